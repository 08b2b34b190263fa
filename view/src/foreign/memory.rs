//! Device memory for whoever asks for it by DLPack.

use std::ffi::c_void;

use super::{
    driver::driver,
    event::{Context, in_context},
};
use crate::ViewError;

/// Bytes that are allocated and freed in the order of the legacy default stream.
pub(crate) struct Memory {
    pointer: u64,
    context: Context,
}

// SAFETY: handles of the driver, whose functions may be called from any thread.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

/// `CU_STREAM_LEGACY`.
const LEGACY: *mut c_void = std::ptr::without_provenance_mut(1);

impl Memory {
    /// `bytes` of them, which must not be 0.
    pub(crate) fn new(context: Context, bytes: usize) -> Result<Memory, ViewError> {
        let driver = driver()?;
        in_context(context, || {
            let mut pointer = 0;
            // SAFETY: `pointer` takes the answer; the context of the stream is current.
            let code = unsafe { (driver.mem_alloc_async)(&raw mut pointer, bytes, LEGACY) };
            driver.check("cuMemAllocAsync", code)?;
            Ok(Memory { pointer, context })
        })
    }

    pub(crate) fn pointer(&self) -> u64 {
        self.pointer
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Ok(driver) = driver() else { return };
        // A failure means that the context is broken, and its memory with it.
        let _ = in_context(self.context, || {
            // SAFETY: the memory is ours and not used after what is enqueued on the stream now.
            let code = unsafe { (driver.mem_free_async)(self.pointer, LEGACY) };
            driver.check("cuMemFreeAsync", code)
        });
    }
}
