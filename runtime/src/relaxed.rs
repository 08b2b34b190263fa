//! Looks at events and streams without disturbing a capture.

use cudarc::driver::sys;

/// While it lives, this thread may call what else could disturb a capture in global mode that
/// another thread makes, or one of its own.
///
/// What is allowed anew is [unsafe] only where the capture depends on it; to look whether
/// something is done changes nothing that a graph could hold.
///
/// [unsafe]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html
#[derive(Debug)]
pub(crate) struct RelaxedCapture {
    /// None if the driver kept the mode as it was.
    before: Option<sys::CUstreamCaptureMode>,
}

impl RelaxedCapture {
    pub(crate) fn enter() -> RelaxedCapture {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: `mode` gives the mode and takes the former.
        let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        RelaxedCapture {
            before: code.result().is_ok().then_some(mode),
        }
    }

    /// For as long as the thread lives.
    pub(crate) fn for_good(mut self) {
        self.before = None;
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        if let Some(mode) = &mut self.before {
            // SAFETY: the mode was this thread's before.
            let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(mode) };
        }
    }
}
