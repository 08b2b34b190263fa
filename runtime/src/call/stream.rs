//! Whether a stream can be launched on, and which context is current.

use std::ptr;

use cudarc::driver::CudaStream;

use super::refusal::{error, refused};
use crate::{
    error::{LaunchError, LaunchErrorKind, LoadErrorKind},
    load::Loaded,
};

/// Checks that the stream can be launched on.
///
/// The stream's context need not be current: the driver refuses what would run in another, and
/// whoever is refused makes it current and tries again.
#[inline(always)]
pub(crate) fn begin(
    kernel: &Loaded,
    stream: &CudaStream,
    safe: bool,
    shared_mem_bytes: u64,
) -> Result<(), LaunchError> {
    if let Err(earlier) = stream.context().check_err() {
        return Err(error(kernel, LaunchErrorKind::Earlier(earlier)));
    }
    if safe {
        let (raw, stream_is_capturing) = (stream.cu_stream(), kernel.driver.stream_is_capturing);
        if raw.addr() > PER_THREAD {
            let mut capturing = 0;
            // SAFETY: the stream is borrowed; `capturing` takes the answer.
            let code = unsafe { stream_is_capturing(raw, &raw mut capturing) };
            if code.result().is_err() || capturing != 0 {
                refuse_capture(kernel, stream)?;
            }
        } else if raw.addr() == PER_THREAD {
            // In another context, it would be asked of another stream.
            refuse_capture(kernel, stream)?;
        }
    }
    if kernel.is_to_grant(shared_mem_bytes) {
        // The opt-in asks for the kernel's context.
        rebind(kernel, stream)?;
    }
    Ok(())
}

/// `CU_STREAM_PER_THREAD`; below it are the handles of the legacy default stream, null and
/// `CU_STREAM_LEGACY`, which cannot be captured.
const PER_THREAD: usize = 2;

/// Whether its handle is that of a default stream, which is another one in each context.
#[inline(always)]
pub(super) fn is_default(stream: &CudaStream) -> bool {
    stream.cu_stream().addr() <= PER_THREAD
}

/// Refuses a stream that is being captured, or that the driver does not answer for though its
/// context is current.
#[cold]
#[inline(never)]
pub(super) fn refuse_capture(kernel: &Loaded, stream: &CudaStream) -> Result<(), LaunchError> {
    rebind(kernel, stream)?;
    let mut capturing = 0;
    // SAFETY: the stream is borrowed, its context current; `capturing` takes the answer.
    let code =
        unsafe { (kernel.driver.stream_is_capturing)(stream.cu_stream(), &raw mut capturing) };
    if let Err(code) = code.result() {
        return Err(refused(kernel, "cuStreamIsCapturing", code, String::new()));
    }
    if capturing != 0 {
        return Err(error(kernel, LaunchErrorKind::Capturing));
    }
    Ok(())
}

/// Makes the stream's context current; false if it is already.
#[inline(never)]
pub(super) fn rebind(kernel: &Loaded, stream: &CudaStream) -> Result<bool, LaunchError> {
    let context = stream.context();
    let mut current = ptr::null_mut();
    // SAFETY: `current` takes the answer.
    let code = unsafe { (kernel.driver.ctx_get_current)(&raw mut current) };
    if code.result().is_ok() && current == context.cu_ctx() {
        return Ok(false);
    }
    match context.bind_to_thread() {
        Ok(()) => Ok(true),
        Err(source) => {
            let ordinal = context.ordinal();
            let unbound = LoadErrorKind::Context { ordinal, source };
            Err(error(kernel, LaunchErrorKind::Load(unbound.into())))
        }
    }
}

/// Whether cudarc neither waits for, nor records, uses of arrays on this stream.
#[inline(always)]
pub(super) fn is_alone(stream: &CudaStream) -> bool {
    !stream.context().is_managing_stream_synchronization()
}
