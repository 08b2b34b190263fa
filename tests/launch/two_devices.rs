//! A second device: arrays, streams and handles of one are not taken for the other's.

use std::{sync::Arc, thread};

use gridcall::{
    AsDeviceView, AsDeviceViewMut, Guard, LaunchErrorKind, StreamRef, View, ViewError, cover,
    cudarc::driver::{
        CudaContext, CudaSlice,
        sys::{CUgraphInstantiate_flags, CUstreamCaptureMode},
    },
};

use crate::{
    kernels::{fill, saxpy, scale, slow_add},
    support::{LONG, ramp, second_device},
};

/// An array that makes another context current where it is acquired.
struct Leading {
    array: CudaSlice<f32>,
    to: Arc<CudaContext>,
}

// SAFETY: the array is asked, and nobody else has it.
unsafe impl AsDeviceViewMut<f32> for Leading {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        let view = self.array.describe()?;
        // Not tracked, so that a launch does not leave out to acquire it.
        Ok(View::new(view.pointer(), view.len(), view.place()))
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let guard = self.array.acquire_mut(stream);
        self.to.bind_to_thread().unwrap();
        guard
    }
}

#[test]
fn an_argument_may_lead_to_the_other_device() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    for stream in [first.default_stream(), first.per_thread_stream()] {
        let mut y = Leading {
            array: stream.alloc_zeros::<f32>(256).unwrap(),
            to: second.clone(),
        };
        let mut replay = slow_add::load(&first).unwrap().replay().unwrap();
        for _ in 0..3 {
            slow_add(&stream, (1, 256), &mut y, 1.0, LONG).unwrap();
            let arguments = slow_add {
                y: &mut y,
                v: 1.0,
                cycles: LONG,
            };
            replay.launch(&stream, (1, 256), arguments).unwrap();
        }
        assert_eq!(stream.clone_dtoh(&y.array).unwrap(), [6.0; 256]);
    }
}

#[test]
fn the_captured_stream_of_a_thread_is_refused_wherever_it_is() {
    let first = device!(alone);
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let stream = first.per_thread_stream();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    let mut replay = fill::load(&first).unwrap().replay().unwrap();
    // What is loaded while it is captured would be refused for that.
    fill(&stream, cover(8), &mut y, 1.0, 8).unwrap();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).unwrap();
    second.bind_to_thread().unwrap();
    let launched = fill(&stream, cover(8), &mut y, 2.0, 8);
    second.bind_to_thread().unwrap();
    let arguments = fill {
        y: &mut y,
        v: 3.0,
        n: 8,
    };
    let replayed = replay.launch(&stream, cover(8), arguments);
    stream.end_capture(CUgraphInstantiate_flags(0)).unwrap();
    for refused in [launched, replayed] {
        let error = refused.unwrap_err();
        assert!(
            matches!(error.kind(), LaunchErrorKind::Capturing),
            "{error}"
        );
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 8]);
}

#[test]
fn one_kernel_runs_on_both() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    for context in [&*first, &second] {
        let stream = context.default_stream();
        let x = stream.clone_htod(&ramp(64)).unwrap();
        let mut y = stream.alloc_zeros::<f32>(64).unwrap();
        saxpy(&stream, cover(64), 64, 2.0, &x, &mut y).unwrap();
        let expected: Vec<f32> = ramp(64).iter().map(|x| 2.0 * x).collect();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    }
}

#[test]
fn an_array_of_the_other_device_is_refused() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let (here, there) = (first.default_stream(), second.default_stream());
    let mut y = there.clone_htod(&[3.0_f32; 8]).unwrap();
    let error = scale(&here, cover(8), &mut y, 2.0, 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `scale`: argument `y` (parameter 0, &mut [f32]): the array is on device 1, the \
         stream is on device 0; launch on a stream of device 1, or copy the array"
    );
    assert_eq!(there.clone_dtoh(&y).unwrap(), [3.0; 8]);
    scale(&there, cover(8), &mut y, 2.0, 8).unwrap();
    assert_eq!(there.clone_dtoh(&y).unwrap(), [6.0; 8]);
}

#[test]
fn a_handle_of_the_other_device_is_refused() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let there = second.default_stream();
    let mut y = there.clone_htod(&[3.0_f32; 8]).unwrap();
    let kernel = fill::load(&first).unwrap();
    let arguments = fill {
        y: &mut y,
        v: 1.0,
        n: 8,
    };
    let error = kernel.launch(&there, cover(8), arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fill`: the kernel was loaded in a context of device 0, the stream belongs to \
         another context, of device 1; load it with that stream's context"
    );
    assert_eq!(there.clone_dtoh(&y).unwrap(), [3.0; 8]);
}

#[test]
fn the_other_device_may_be_current() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let stream = first.default_stream();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            second.bind_to_thread().unwrap();
            fill(&stream, cover(8), &mut y, 5.0, 8).unwrap();
            second.bind_to_thread().unwrap();
            fill(&stream, cover(4), &mut y, 6.0, 4).unwrap();
        });
    });
    let mut expected = [5.0; 8];
    expected[..4].fill(6.0);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn managed_memory_is_taken_on_both() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    // SAFETY: it is written before it is read.
    let mut y = unsafe { first.alloc_unified::<f32>(64, true) }.unwrap();
    y.as_mut_slice().unwrap().fill(1.0);
    scale(&first.default_stream(), cover(64), &mut y, 3.0, 64).unwrap();
    first.synchronize().unwrap();
    scale(&second.default_stream(), cover(64), &mut y, 5.0, 64).unwrap();
    second.synchronize().unwrap();
    assert_eq!(y.as_slice().unwrap(), [15.0; 64]);
}
