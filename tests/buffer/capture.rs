//! Streams that are being captured into a graph are refused by name, and no capture is disturbed.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use gridcall::{
    Buffer, BufferErrorKind, LaunchError, after, cover,
    cudarc::driver::{CudaStream, sys},
    timed,
};

use crate::kernels::{copy, fill};

fn begin(stream: &Arc<CudaStream>) {
    stream
        .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
}

/// Ends the capture, which nothing may have disturbed.
fn end(stream: &Arc<CudaStream>) {
    stream
        .end_capture(sys::CUgraphInstantiate_flags(0))
        .unwrap();
}

#[test]
fn a_capturing_stream_is_refused() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 16).unwrap();
    let y = Buffer::<f32>::zeroed(&b, 16).unwrap();
    a.synchronize().unwrap();
    begin(&a);
    assert!(fill(&a, cover(16), &mut x, 1.0, 16).is_err());
    for error in [
        Buffer::<f32>::zeroed(&a, 16).unwrap_err(),
        x.to_vec().unwrap_err(),
        x.copy_from_slice(&[1.0; 16]).unwrap_err(),
        x.clear(&a).unwrap_err(),
        x.copy_from(&a, y.as_slice()).unwrap_err(),
        y.clone_to(&a).unwrap_err(),
        after(&a, ()).unwrap_err(),
    ] {
        assert!(
            matches!(error.kind(), BufferErrorKind::Capturing),
            "{error}"
        );
    }
    end(&a);
    fill(&a, cover(16), &mut x, 1.0, 16).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1.0; 16]);
}

#[test]
fn a_user_that_is_being_captured_cannot_be_waited_for() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let x = Buffer::<f32>::zeroed(&a, 16).unwrap();
    let mut y = Buffer::<f32>::zeroed(&b, 16).unwrap();
    a.synchronize().unwrap();
    begin(&a);
    let error = copy(&b, cover(16), &x, &mut y, 16).unwrap_err();
    assert!(
        error.to_string().contains("argument `input` (parameter 0, &[f32]): another stream that used the buffer is being captured"),
        "{error}"
    );
    end(&a);
    copy(&b, cover(16), &x, &mut y, 16).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0; 16]);
}

/// In global mode a capture forbids looking at whatever event or stream, on every thread that does not say it knows.
#[test]
fn looking_at_what_is_done_disturbs_no_capture() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let x = Buffer::<f32>::zeroed(&b, 16).unwrap();
    let mut polled = after(&b, ()).unwrap();
    let (dropped, kept) = (after(&b, ()).unwrap(), after(&b, ()).unwrap());
    let elapsed = timed(&b, |_| Ok::<_, LaunchError>(())).unwrap();
    // A stream that buffers know, and that nobody else has any more; and one that they do not know.
    let known = device.new_stream().unwrap();
    let mut y = Buffer::<f32>::zeroed(&known, 16).unwrap();
    copy(&known, cover(16), &x, &mut y, 16).unwrap();
    drop(y);
    known.synchronize().unwrap();
    drop(known);
    let unknown = device.new_stream().unwrap();
    let mut y = unknown.alloc_zeros::<f32>(16).unwrap();
    b.synchronize().unwrap();
    a.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)
        .unwrap();
    assert!(kept.is_done().unwrap());
    assert!(elapsed.is_done().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(
        pin!(&mut polled).poll(&mut context),
        Poll::Ready(Ok(()))
    ));
    drop(dropped);
    // More uses than are kept: those that are over are looked for.
    for _ in 0..100 {
        copy(&unknown, cover(16), &x, &mut y, 16).unwrap();
    }
    end(&a);
}

#[test]
fn a_buffer_dropped_during_a_capture_is_freed_after_it() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let x = Buffer::<f32>::zeroed(&a, 16).unwrap();
    let mut y = Buffer::<f32>::zeroed(&b, 16).unwrap();
    let z = Buffer::<f32>::zeroed(&a, 16).unwrap();
    copy(&b, cover(16), &z, &mut y, 16).unwrap();
    a.synchronize().unwrap();
    begin(&a);
    drop(x); // only `a` used it
    drop(z); // `b` too
    end(&a);
    device.check_err().unwrap();
    // Tries again.
    drop(Buffer::<f32>::zeroed(&b, 16).unwrap());
    device.check_err().unwrap();
    a.synchronize().unwrap();
    b.synchronize().unwrap();
}
