//! Is a kernel found in each context, however many there are and however often they come and go?

use std::sync::Arc;

use gridcall::{
    ArgumentError, LaunchErrorKind, cover, cudarc::driver::CudaContext, cudarc::driver::sys,
};
use libloading::Library;

use crate::{
    kernels::{fill, saxpy},
    support::ramp,
};

/// A launch in this context, with its result.
fn try_out(context: &Arc<CudaContext>) {
    let stream = context.default_stream();
    let x = stream.clone_htod(&ramp(50)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(50).unwrap();
    saxpy(&stream, cover(50), 50, 2.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = ramp(50).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

/// A context of device 0 that is not its primary one.
fn another_context() -> Arc<CudaContext> {
    type Create = unsafe extern "C" fn(*mut sys::CUcontext, u32, sys::CUdevice) -> sys::CUresult;
    // cudarc's bindings have it under another signature for each toolkit.
    // SAFETY: the driver is loaded already.
    let driver = unsafe { Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the type is that of the function in the driver's header.
    let create = unsafe { driver.get::<Create>(b"cuCtxCreate_v2") }.unwrap();
    let mut raw = std::ptr::null_mut();
    // SAFETY: the place takes the answer; device 0 is open.
    unsafe { create(&raw mut raw, 0, 0) }.result().unwrap();
    // SAFETY: the context was created just now, on this device, and is handed over.
    unsafe { CudaContext::from_raw_context(0, 0, raw) }.unwrap()
}

#[test]
fn two_objects_of_one_context() {
    let device = device!();
    let other = CudaContext::new(0).unwrap();
    assert_eq!(device.cu_ctx(), other.cu_ctx());
    try_out(&device);
    try_out(&other);

    // Arrays of one, the stream of the other.
    let (here, there) = (device.default_stream(), other.new_stream().unwrap());
    let x = here.clone_htod(&ramp(50)).unwrap();
    let mut y = there.alloc_zeros::<f32>(50).unwrap();
    saxpy(&there, cover(50), 50, 1.0, &x, &mut y).unwrap();
    saxpy(&here, cover(50), 50, 1.0, &x, &mut y).unwrap();
    saxpy(&there, cover(50), 50, 1.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = ramp(50).iter().map(|x| 3.0 * x).collect();
    assert_eq!(there.clone_dtoh(&y).unwrap(), expected);

    // A handle of one, the stream of the other.
    let kernel = saxpy::load(&other).unwrap();
    let arguments = saxpy {
        n: 50,
        a: -3.0,
        x: &x,
        y: &mut y,
    };
    kernel.launch(&here, cover(50), arguments).unwrap();
    assert_eq!(here.clone_dtoh(&y).unwrap(), [0.0; 50]);
}

#[test]
fn objects_of_one_context_come_and_go() {
    let device = device!();
    for _ in 0..200 {
        try_out(&CudaContext::new(0).unwrap());
    }
    try_out(&device);
}

#[test]
fn a_context_is_released_and_made_again() {
    in_child!([], {
        for _ in 0..10 {
            // The only one in this process: its drop releases the primary context.
            let context = gridcall::device(0).unwrap();
            try_out(&context);
            let kernel = fill::load(&context).unwrap();
            assert!(kernel.max_threads_per_block() > 0);
        }
        let contexts: Vec<_> = (0..2).map(|_| gridcall::device(0).unwrap()).collect();
        assert!(Arc::ptr_eq(&contexts[0], &contexts[1]));
        try_out(&contexts[1]);
    });
}

#[test]
fn a_handle_outlives_all_else() {
    in_child!([], {
        let kernel = {
            let context = gridcall::device(0).unwrap();
            fill::load(&context).unwrap()
        };
        let stream = kernel.context().default_stream();
        let mut y = stream.alloc_zeros::<f32>(10).unwrap();
        let arguments = fill {
            y: &mut y,
            v: 4.0,
            n: 10,
        };
        kernel.launch(&stream, cover(10), arguments).unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), [4.0; 10]);
    });
}

#[test]
fn two_contexts_of_one_device() {
    let device = device!();
    let other = another_context();
    assert_ne!(device.cu_ctx(), other.cu_ctx());
    try_out(&other);
    try_out(&device);

    let (here, there) = (device.default_stream(), other.default_stream());
    let x = here.clone_htod(&ramp(8)).unwrap();
    let mut y = there.clone_htod(&[7.0_f32; 8]).unwrap();

    // An array of another context than the stream's.
    let error = saxpy(&there, cover(8), 8, 1.0, &x, &mut y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: argument `x` (parameter 2, &[f32]): the array belongs to another context \
         of device 0 than the stream; launch on a stream of the array's context, or copy the array"
    );
    let error = saxpy(&here, cover(8), 8, 1.0, &x, &mut y).unwrap_err();
    assert!(matches!(
        error.kind(),
        LaunchErrorKind::Argument {
            index: 3,
            error: ArgumentError::OtherContext { device: 0, .. },
            ..
        }
    ));

    // A handle of another context than the stream's.
    let kernel = fill::load(&device).unwrap();
    let arguments = fill {
        y: &mut y,
        v: 1.0,
        n: 8,
    };
    let error = kernel.launch(&there, cover(8), arguments).unwrap_err();
    let elsewhere = "kernel `fill`: the kernel was loaded in a context of device 0, the stream \
                     belongs to another context, of device 0; load it with that stream's context";
    assert_eq!(error.to_string(), elsewhere);
    let error = kernel.prepare(&there, cover(8)).unwrap_err();
    assert_eq!(error.to_string(), elsewhere);

    // An event of another context than the stream's.
    let event = device.new_event(None).unwrap();
    let launch = cover(8).launch_completion_event(&event);
    let error = fill(&there, launch, &mut y, 1.0, 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fill`: the launch-completion event belongs to another context than the stream, of \
         device 0; make it with `stream.context().new_event(None)`"
    );
    assert_eq!(there.clone_dtoh(&y).unwrap(), [7.0; 8]);
    // cudarc frees an array of a default stream on the default stream of whatever context is
    // current then, which waits for neither of these.
    here.synchronize().unwrap();
    there.synchronize().unwrap();
}

#[test]
fn another_context_may_be_current() {
    let device = device!();
    let other = another_context();
    let (here, there) = (device.default_stream(), other.default_stream());
    let mut a = here.alloc_zeros::<f32>(8).unwrap();
    let mut b = there.alloc_zeros::<f32>(8).unwrap();
    // Each launch finds the other's context current.
    for _ in 0..3 {
        fill(&here, cover(8), &mut a, 1.0, 8).unwrap();
        fill(&there, cover(8), &mut b, 2.0, 8).unwrap();
    }
    assert_eq!(here.clone_dtoh(&a).unwrap(), [1.0; 8]);
    assert_eq!(there.clone_dtoh(&b).unwrap(), [2.0; 8]);
}
