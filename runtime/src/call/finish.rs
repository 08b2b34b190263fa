//! The end of a launch: what it did with the arrays is recorded, and waited for where it must be.

use std::mem::ManuallyDrop;

use cudarc::driver::sys::CUstream;
use gridcall_view::{Guard, ViewError};

use super::refusal::{error, refused};
use crate::{
    attributes::Attributes,
    describe::{Arrays, LaunchDescription},
    error::{LaunchError, LaunchErrorKind},
    load::Loaded,
};

/// Finishes the guards of a launch. All of them, whatever happens: each stands for another array.
#[derive(Debug)]
#[must_use]
pub struct Finish<'a> {
    pub(super) kernel: &'a Loaded,
    /// Borrowed for `'a`.
    pub(super) stream: CUstream,
    /// Not dropped where a guard panics, so that it need not exist in memory.
    pub(super) error: ManuallyDrop<Option<LaunchError>>,
}

impl Finish<'_> {
    /// Records the kernel's use of one array.
    #[inline(always)]
    pub fn guard(&mut self, index: usize, guard: Guard<'_>) {
        if let Err(error) = guard.finish() {
            // SAFETY: the stream is borrowed and its context current.
            let error = unsafe { not_recorded(self.kernel, self.stream, index, error) };
            self.error.get_or_insert(error);
        }
    }

    /// The first error.
    #[inline(always)]
    pub fn result(self) -> Result<(), LaunchError> {
        match ManuallyDrop::into_inner(self.error) {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// Waits for the kernel, and tells all that is known of it if it failed.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
pub(super) unsafe fn synchronise(
    kernel: &Loaded,
    stream: CUstream,
    dims: [u32; 7],
    params: &[u8],
    arrays: Option<&Arrays>,
    attributes: Option<&Attributes<'_>>,
) -> Result<(), LaunchError> {
    let mut capturing = 0;
    // SAFETY: the caller vouches for the stream and the context; `capturing` takes the answer.
    let code = unsafe { (kernel.driver.stream_is_capturing)(stream, &raw mut capturing) };
    if code.result().is_ok() && capturing != 0 {
        // What is captured does not run now, and a wait would end the capture.
        return Ok(());
    }
    // SAFETY: the caller vouches for the stream and the context.
    let code = unsafe { (kernel.driver.stream_synchronize)(stream) };
    let Err(code) = code.result() else {
        return Ok(());
    };
    let declaration = kernel.declaration;
    let nothing = Arrays::default();
    let arrays = arrays.unwrap_or(&nothing);
    let launch = LaunchDescription::new(kernel, dims, stream, params, arrays, attributes);
    let kind = LaunchErrorKind::Fault {
        file: declaration.file,
        line: declaration.line,
        code,
        launch: Box::new(launch),
    };
    Err(error(kernel, kind))
}

/// Waits for the kernel.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
pub(super) unsafe fn wait(kernel: &Loaded, stream: CUstream) -> Result<(), LaunchError> {
    // SAFETY: the caller vouches for the stream and the context.
    let code = unsafe { (kernel.driver.stream_synchronize)(stream) };
    code.result()
        .map_err(|code| refused(kernel, "cuStreamSynchronize", code, String::new()))
}

/// Waits for the kernel, since nobody else would: its use of an array is not recorded.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
unsafe fn not_recorded(
    kernel: &Loaded,
    stream: CUstream,
    index: usize,
    reason: ViewError,
) -> LaunchError {
    // If that fails too, the context is broken, nothing runs in it any more, and its memory is
    // gone with it.
    // SAFETY: the caller vouches for the stream and the context.
    let _ = unsafe { (kernel.driver.stream_synchronize)(stream) };
    let kind = LaunchErrorKind::Finish {
        index,
        name: kernel.declaration.params[index].name,
        error: reason,
    };
    error(kernel, kind)
}
