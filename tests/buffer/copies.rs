//! To the host and back, and from buffer to buffer.

use gridcall::{
    Buffer, BufferErrorKind, Float3, KernelArg, Pinned, cover,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr},
};
use half::f16;
use num_complex::Complex;
use std::sync::Arc;

use crate::{
    kernels::{fill, scale, slow_add},
    support::{LONG, ramp},
};

#[test]
fn what_went_there_comes_back() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    macro_rules! round_trip {
        ($($value:expr),+) => {$(
            let values = [$value; 5];
            let buffer = Buffer::from_slice(&stream, &values).unwrap();
            assert_eq!(buffer.len(), 5);
            assert_eq!(buffer.to_vec().unwrap(), values);
        )+};
    }
    round_trip!(
        1_u8,
        -2_i16,
        3_u32,
        usize::MAX,
        i128::MIN,
        0.5_f32,
        f64::MAX,
        true
    );
    round_trip!(
        f16::from_f32(1.5),
        Complex::new(1.0_f32, -1.0),
        Float3::new(1.0, 2.0, 3.0)
    );
    round_trip!([1_u16, 2, 3]);
}

#[test]
fn new_buffers_are_zero() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    // Memory that held something else before.
    drop(Buffer::from_slice(&stream, &[u32::MAX; 100]).unwrap());
    let zeros = Buffer::<u32>::zeroed(&stream, 100).unwrap();
    assert_eq!(zeros.to_vec().unwrap(), [0; 100]);
    assert_eq!(
        Buffer::<bool>::zeroed(&stream, 3)
            .unwrap()
            .to_vec()
            .unwrap(),
        [false; 3]
    );
}

#[test]
fn nothing_is_a_buffer_too() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut none = Buffer::<f32>::from_slice(&stream, &[]).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.to_vec().unwrap(), [0.0; 0]);
    fill(&stream, cover(0), &mut none, 1.0, 0).unwrap();
    none.resize(&stream, 2).unwrap();
    assert_eq!(none.to_vec().unwrap(), [0.0; 2]);
    none.resize(&stream, 0).unwrap();
    drop(none.into_cuda_slice().unwrap());
}

#[test]
fn a_bool_that_is_none_is_an_error() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut flags = Buffer::from_slice(&stream, &[true, false, true, true]).unwrap();
    assert_eq!(flags.to_vec().unwrap(), [true, false, true, true]);
    // As a kernel might: through cudarc, which does not look.
    let (address, record) = flags.device_ptr(&stream);
    drop(record);
    // SAFETY: the byte is the third flag's.
    let mut third = unsafe { stream.upgrade_device_ptr::<u8>(address + 2, 1) };
    stream.memcpy_htod(&[7_u8], &mut third).unwrap();
    let _ = third.leak();
    let error = flags.to_vec().unwrap_err();
    assert_eq!(
        error.to_string(),
        "element 2 is no valid `bool`; read it with `to_bytes` to see what it is"
    );
    assert_eq!(flags.to_bytes().unwrap(), [1, 0, 7, 1]);
    assert_eq!(flags.slice(..2).unwrap().to_vec().unwrap(), [true, false]);
    flags.clear(&stream).unwrap();
    assert_eq!(flags.to_vec().unwrap(), [false; 4]);
}

#[test]
fn a_struct_with_padding_comes_back_as_bytes() {
    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    struct Padded {
        byte: u8,
        word: u32,
    }
    let device = device!();
    let stream = device.new_stream().unwrap();
    let padded = [Padded { byte: 1, word: 2 }, Padded { byte: 3, word: 4 }];
    let bytes = Buffer::from_slice(&stream, &padded)
        .unwrap()
        .to_bytes()
        .unwrap();
    assert_eq!((bytes[0], &bytes[4..9]), (1, &[2, 0, 0, 0, 3][..]));
}

#[test]
fn lengths_must_agree() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let error = x.copy_from_slice(&[1.0; 3]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot copy 3 elements to 4; take slices of one length"
    );
    assert!(x.copy_to_slice(&mut [0.0; 5]).is_err());
    let y = Buffer::<f32>::zeroed(&stream, 5).unwrap();
    let error = x.copy_from(&stream, y.as_slice()).unwrap_err();
    assert!(matches!(
        error.kind(),
        BufferErrorKind::Length { from: 5, to: 4 }
    ));
    assert!(Buffer::<u64>::zeroed(&stream, usize::MAX / 4).is_err());
}

#[test]
fn copies_wait_for_writes_and_writes_for_copies() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    slow_add(&a, (4, 256), &mut x, 1.0, LONG).unwrap();
    let mut y = x.clone_to(&b).unwrap();
    fill(&a, cover(1024), &mut x, 7.0, 1024).unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0; 1024]);
    slow_add(&b, (4, 256), &mut y, 1.0, LONG).unwrap();
    x.copy_from(&a, y.as_slice()).unwrap();
    y.clear(&b).unwrap();
    assert_eq!(x.to_vec().unwrap(), [2.0; 1024]);
    let mut host = [0.0; 1024];
    x.copy_to_slice(&mut host).unwrap();
    assert_eq!(host, [2.0; 1024]);
}

#[test]
fn a_host_slice_may_be_pinned() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut pinned = Pinned::from_slice(&device, &ramp(1024)).unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 1024).unwrap();
    slow_add(&stream, (4, 256), &mut x, 1.0, LONG).unwrap();
    x.copy_from_slice(&pinned).unwrap();
    // The copy is done: this changes nothing of it.
    pinned.fill(-1.0);
    assert_eq!(x.to_vec().unwrap(), ramp(1024));
}

#[test]
fn growing_keeps_what_there_was() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::from_slice(&a, &ramp(100)).unwrap();
    scale(&a, cover(100), &mut x, 2.0, 100).unwrap();
    x.resize(&b, 150).unwrap();
    let mut expected: Vec<f32> = ramp(100).iter().map(|x| 2.0 * x).collect();
    expected.resize(150, 0.0);
    assert_eq!(x.to_vec().unwrap(), expected);
    x.resize(&a, 10).unwrap();
    assert_eq!(x.to_vec().unwrap(), expected[..10]);
}

#[test]
fn cudarc_arrays_are_taken_and_given() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut slice: CudaSlice<f32> = a.clone_htod(&ramp(256)).unwrap();
    slow_add(&b, (1, 256), &mut slice, 1.0, LONG).unwrap();
    let mut buffer = Buffer::from_cuda_slice(slice).unwrap();
    let expected = |by: f32| -> Vec<f32> { ramp(256).iter().map(|x| x + by).collect() };
    assert_eq!(buffer.to_vec().unwrap(), expected(1.0));
    slow_add(&b, (1, 256), &mut buffer, 1.0, LONG).unwrap();
    let slice = buffer.into_cuda_slice().unwrap();
    assert_eq!(slice.len(), 256);
    assert_eq!(slice.stream().clone_dtoh(&slice).unwrap(), expected(2.0));
}

#[test]
fn freeing_says_what_went_wrong() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    slow_add(&b, (4, 256), &mut x, 1.0, LONG).unwrap();
    x.free().unwrap();
    Buffer::<f32>::zeroed(&a, 0).unwrap().free().unwrap();
}

#[test]
fn too_much_memory_is_an_error() {
    let device = device!();
    let stream: Arc<CudaStream> = device.new_stream().unwrap();
    let error = Buffer::<u8>::zeroed(&stream, 1 << 50).unwrap_err();
    assert!(
        matches!(error.kind(), BufferErrorKind::Allocate { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("cannot allocate 1125899906842624 bytes on device 0")
    );
}
