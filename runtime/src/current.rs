//! Makes a context current for a few driver calls, and what was current again after them.

use std::ptr;

use cudarc::driver::{CudaContext, DriverError, result, sys};

/// While it lives, the context is current on this thread.
///
/// cudarc's `bind_to_thread` is no substitute: it stops at an error that an earlier call stored,
/// and leaves the context current.
#[derive(Debug)]
pub(crate) struct Current {
    /// What to make current again.
    before: Option<sys::CUcontext>,
}

impl Current {
    /// Makes the context current.
    pub(crate) fn enter(context: &CudaContext) -> Result<Current, DriverError> {
        let before = result::ctx::get_current()?.unwrap_or(ptr::null_mut());
        if before == context.cu_ctx() {
            return Ok(Current { before: None });
        }
        // SAFETY: the object keeps its context alive.
        unsafe { result::ctx::set_current(context.cu_ctx()) }?;
        Ok(Current {
            before: Some(before),
        })
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // If this fails, another context stays current, which every call here allows for.
            // SAFETY: it was current when this one was made so, and is this thread's to keep.
            let _ = unsafe { sys::cuCtxSetCurrent(before) };
        }
    }
}
