//! Asks an array for its pointer without enqueuing anything.
//!
//! `DevicePtr::device_ptr` makes the stream it is given wait for the array's last write. Every
//! such wait begins with the check whether an earlier error is stored in the stream's context,
//! and stops there if one is, storing it again. The probe is a stream of a context that always
//! has one stored, so it never reaches the driver. It is a thread's own: two threads on one probe
//! could fetch the stored error at the same time, and the second would find none.

use std::{mem, sync::Arc};

use cudarc_019::driver::{
    CudaContext, CudaStream, DevicePtr, DriverError, result,
    sys::{self, cudaError_enum::CUDA_ERROR_INVALID_CONTEXT},
};

thread_local! {
    static PROBE: Option<Arc<CudaStream>> = probe().ok();
}

/// The device address of the first element. Out of the way of launches while one stream is in use.
#[cold]
#[inline(never)]
pub(super) fn pointer<T, A: DevicePtr<T>>(array: &A) -> u64 {
    let by = |stream: &CudaStream| {
        let (pointer, record) = array.device_ptr(stream);
        // Recording is left to the guard of the launch.
        mem::forget(record);
        pointer
    };
    // Without a probe (the thread is ending, or the driver failed at its first question) the
    // array's own stream is made to wait for the array's own last write, which changes no result.
    PROBE
        .try_with(|probe| probe.as_deref().map(by))
        .ok()
        .flatten()
        .unwrap_or_else(|| by(array.stream()))
}

/// A stream whose context always has an error stored.
fn probe() -> Result<Arc<CudaStream>, DriverError> {
    let current = result::ctx::get_current()?.unwrap_or(std::ptr::null_mut());
    // SAFETY: the context handle is null, so the call makes none current and the drop destroys
    // none. The object is not handed out, and with an error stored each of its functions, and
    // those of its stream, returns that error before it would use the handle.
    let context = unsafe { CudaContext::from_raw_context(0, 0, std::ptr::null_mut()) };
    // SAFETY: it is the context that was current a moment ago, or null for none.
    unsafe { sys::cuCtxSetCurrent(current) }.result()?;
    let context = context?;
    context.record_err(Err::<(), _>(DriverError(CUDA_ERROR_INVALID_CONTEXT)));
    Ok(context.default_stream())
}
