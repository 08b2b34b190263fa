//! Launches on a stream that is being captured into a graph.
//!
//! Each test has the device alone: cudarc waits for the whole context when a second stream is made,
//! which invalidates the captures of other threads.

use std::sync::Arc;

use gridcall::{
    BorrowedViewMut, LaunchErrorKind, LoadErrorKind, Place, cover,
    cudarc::driver::{
        CudaContext, CudaGraph, CudaStream, DevicePtrMut,
        sys::{CUgraphInstantiate_flags, CUstreamCaptureMode, CUstreamCaptureStatus},
    },
    kernel,
};

use crate::kernels::{fill, saxpy};

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// The launch must have at most as many threads as `y` elements, and the caller orders all
    /// uses of `y`, the graph's too.
    #[name("slow_add")]
    unsafe fn add_captured(y: &mut [f32], v: f32, cycles: i64);
}

fn begin(stream: &CudaStream) {
    stream
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
}

/// Ends the capture, which must have lasted until now.
fn end(stream: &Arc<CudaStream>) -> CudaGraph {
    assert_eq!(
        stream.capture_status().unwrap(),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    let graph = stream.end_capture(CUgraphInstantiate_flags(0)).unwrap();
    graph.expect("the capture was not invalidated")
}

#[test]
fn a_safe_kernel_is_refused_and_the_capture_lives() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let x = stream.clone_htod(&[1.0_f32; 16]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    let kernel = saxpy::load(&device).unwrap();
    begin(&stream);
    let error = saxpy(&stream, cover(16), 16, 1.0, &x, &mut y).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Capturing));
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: the stream is being captured into a graph; events recorded in a capture \
         would poison every later use of the arrays, so safe launches refuse it"
    );
    let arguments = saxpy {
        n: 16,
        a: 1.0,
        x: &x,
        y: &mut y,
    };
    let error = kernel.launch(&stream, cover(16), arguments).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Capturing));
    let graph = end(&stream);
    graph.launch().unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 16]);
    // The arrays are as good as before.
    saxpy(&stream, cover(16), 16, 1.0, &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 16]);
}

#[test]
fn a_kernel_is_not_loaded_during_a_capture() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    begin(&stream);
    // It would not be launched if it were loaded.
    let error = fill(&stream, cover(16), &mut y, 1.0, 16).unwrap_err();
    assert!(
        matches!(error.kind(), LaunchErrorKind::Capturing),
        "{error}"
    );
    // SAFETY: nothing is launched.
    let error = unsafe { add_captured(&stream, (1, 16), &mut y, 1.0, 0) }.unwrap_err();
    let LaunchErrorKind::Load(load) = error.kind() else {
        panic!("{error}");
    };
    assert!(matches!(
        load.kind(),
        LoadErrorKind::Capturing {
            kernel: "add_captured"
        }
    ));
    assert_eq!(
        load.to_string(),
        "kernel `add_captured` is not loaded yet, and its stream is being captured into a graph; \
         load it before the capture, with `add_captured::load(&ctx)`"
    );
    end(&stream);
    fill(&stream, cover(16), &mut y, 1.0, 16).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 16]);
}

#[test]
fn an_unsafe_kernel_is_captured_and_replayed() {
    let device = device!(alone);
    capture_and_replay(&device);
}

#[test]
fn a_captured_kernel_is_not_waited_for() {
    in_child!([("GRIDCALL_SYNC", "1")], {
        let device = device!(alone);
        capture_and_replay(&device);
    });
}

fn capture_and_replay(device: &Arc<CudaContext>) {
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    let address = y.device_ptr_mut(&stream).0;
    // SAFETY: the array outlives the graph, and all work on it is on one stream.
    let mut view = unsafe { BorrowedViewMut::<f32>::new(address, 64, Place::Device(0)) };
    add_captured::load(device).unwrap();
    begin(&stream);
    for _ in 0..3 {
        // SAFETY: 64 threads for 64 elements; one stream orders the graph's launches.
        unsafe { add_captured(&stream, (1, 64), &mut view, 1.0, 0) }.unwrap();
    }
    let graph = end(&stream);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 64]);
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [6.0; 64]);
}

#[test]
fn a_capture_on_one_stream_lets_others_launch() {
    let device = device!(alone);
    let captured = device.new_stream().unwrap();
    let free = device.new_stream().unwrap();
    let mut y = free.alloc_zeros::<f32>(16).unwrap();
    fill::load(&device).unwrap();
    begin(&captured);
    fill(&free, cover(16), &mut y, 2.0, 16).unwrap();
    end(&captured);
    assert_eq!(free.clone_dtoh(&y).unwrap(), [2.0; 16]);
}
