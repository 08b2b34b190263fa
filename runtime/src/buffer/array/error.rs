//! What can be wrong with a CUDA array.

use std::fmt;

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use crate::error::BufferError;

/// Why an array cannot be made, copied or be a texture or a surface.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct ArrayError(Box<ArrayErrorKind>);

/// What an [`ArrayError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayErrorKind {
    /// The other side of a copy says so.
    #[error("{0}")]
    View(ViewError),
    /// A rule of arrays is not kept.
    #[error("{0}")]
    Rule(String),
    /// As with any memory.
    #[error("{0}")]
    Memory(BufferError),
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
}

impl ArrayError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &ArrayErrorKind {
        &self.0
    }

    #[cold]
    pub(super) fn driver(call: &'static str, source: DriverError) -> ArrayError {
        ArrayErrorKind::Driver { call, source }.into()
    }
}

impl From<ArrayErrorKind> for ArrayError {
    #[cold]
    fn from(kind: ArrayErrorKind) -> ArrayError {
        ArrayError(Box::new(kind))
    }
}

impl From<BufferError> for ArrayError {
    #[cold]
    fn from(error: BufferError) -> ArrayError {
        ArrayErrorKind::Memory(error).into()
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
