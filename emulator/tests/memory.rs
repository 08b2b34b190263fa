//! Allocation and copies, as a user of cudarc sees them.

use cudarc::driver::{CudaContext, sys};
use gridcall_emulator::Device;

#[test]
fn what_is_copied_in_comes_back() {
    let device = Device::fresh().unwrap();
    let context = CudaContext::new(device.ordinal()).unwrap();
    let stream = context.default_stream();
    let data = stream.clone_htod(&[1.0f32, 2.0, 3.0]).unwrap();
    let copy = stream.clone_dtod(&data).unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), [1.0, 2.0, 3.0]);
    let zeros = stream.alloc_zeros::<u64>(100).unwrap();
    assert_eq!(stream.clone_dtoh(&zeros).unwrap(), [0; 100]);
    drop((data, copy, zeros));
    context.synchronize().unwrap();
    assert_eq!(device.leaks(), []);
    assert_eq!(device.reports(), []);
}

#[test]
fn streams_and_events() {
    let device = Device::fresh().unwrap();
    let context = CudaContext::new(device.ordinal()).unwrap();
    let stream = context.new_stream().unwrap();
    let start = context
        .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
        .unwrap();
    let end = context
        .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
        .unwrap();
    start.record(&stream).unwrap();
    let data = stream.clone_htod(&[7u8; 1000]).unwrap();
    end.record(&stream).unwrap();
    assert!(start.elapsed_ms(&end).unwrap() >= 0.0);
    let other = context.new_stream().unwrap();
    let back = other.clone_dtoh(&data).unwrap();
    assert_eq!(back, [7; 1000]);
    assert_eq!(device.reports(), []);
}
