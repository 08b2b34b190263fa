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
