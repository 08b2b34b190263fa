//! Buffers lent to cudarc, by the same rules.

use gridcall::{
    Buffer, cover,
    cudarc::driver::{
        DevicePtr,
        sys::{CUgraphInstantiate_flags, CUstreamCaptureMode},
    },
};

use crate::{
    kernels::{fill, slow_add, slow_copy},
    support::{LONG, ramp},
};

#[test]
fn cudarc_copies_wait_for_launches() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    slow_add(&a, (4, 256), &mut x, 1.0, LONG).unwrap();
    assert_eq!(b.clone_dtoh(&x).unwrap(), [1.0; 1024]);
    slow_add(&a, (4, 256), &mut x, 1.0, LONG).unwrap();
    let slice = b.clone_dtod(&x.slice(..512).unwrap()).unwrap();
    fill(&a, cover(1024), &mut x, 0.0, 1024).unwrap();
    assert_eq!(b.clone_dtoh(&slice).unwrap(), [2.0; 512]);
}

#[test]
fn launches_wait_for_cudarc_copies() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    let mut y = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    let mut other = b.clone_htod(&ramp(1024)).unwrap();
    slow_add(&b, (4, 256), &mut other, 1.0, LONG).unwrap();
    // On a stream that no buffer knows, and behind what takes long.
    b.memcpy_dtod(&other, &mut x).unwrap();
    slow_copy(&a, cover(1024), &x, &mut y, 1024, 1000).unwrap();
    let expected: Vec<f32> = ramp(1024).iter().map(|x| x + 1.0).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
    b.memset_zeros(&mut x.slice_mut(..512).unwrap()).unwrap();
    assert_eq!(x.to_vec().unwrap()[..512], [0.0; 512]);
    assert_eq!(x.to_vec().unwrap()[512..], expected[512..]);
}

#[test]
fn an_address_is_not_lent_to_a_capture() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let x = Buffer::<f32>::zeroed(&a, 16).unwrap();
    drop(Buffer::<f32>::zeroed(&b, 16).unwrap());
    a.synchronize().unwrap();
    for stream in [&a, &b] {
        stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .unwrap();
        let (address, record) = x.device_ptr(stream);
        drop(record);
        assert_eq!(address, 0);
        assert!(device.check_err().is_err());
        let _ = stream.end_capture(CUgraphInstantiate_flags(0));
    }
    let (address, _record) = x.device_ptr(&b);
    assert_ne!(address, 0);
    device.check_err().unwrap();
}

#[test]
fn memory_given_to_cudarc_is_read_after_all_its_uses() {
    let device = device!();
    let [a, b] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    slow_add(&a, (4, 256), &mut x, 2.0, LONG).unwrap();
    let x = x.into_cuda_slice().unwrap();
    assert_eq!(b.clone_dtoh(&x).unwrap(), [2.0; 1024]);
}

#[test]
fn a_buffer_is_not_moved_to_another_context_by_resizing() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    x.resize(&stream, 8).unwrap();
    assert_eq!(x.to_vec().unwrap(), [0.0; 8]);
    if let Ok(second) = gridcall::device(1) {
        let error = x.resize(&second.default_stream(), 16).unwrap_err();
        assert!(error.to_string().contains("device 1"), "{error}");
        assert_eq!(x.len(), 8);
    }
}
