//! Why an object could not be read as an array.

use std::borrow::Cow;

use pyo3::{CastError, PyErr, Python, exceptions::PyException};

use crate::ViewError;

/// Python's own exception, or a reason for the launch to tell.
#[derive(Debug)]
pub(super) enum Unread {
    Raised(PyErr),
    Refused(ViewError),
}

/// What was read of an object.
pub(super) type Read<T> = Result<T, Unread>;

/// The object is an array that no kernel can take.
#[cold]
pub(super) fn refused(reason: impl Into<Cow<'static, str>>) -> Unread {
    Unread::Refused(ViewError::other(reason))
}

/// The object's library would not export it. What it raised is told by the launch, up to the end
/// of its first line: the rest may be a trace of calls.
#[cold]
pub(super) fn not_exported(py: Python<'_>, error: PyErr) -> Unread {
    if !error.is_instance_of::<PyException>(py) {
        return Unread::Raised(error);
    }
    let text = error.value(py).to_string();
    let line = text.lines().next().unwrap_or_default();
    refused(format!("its library does not export it: {line}"))
}

impl From<PyErr> for Unread {
    fn from(error: PyErr) -> Unread {
        Unread::Raised(error)
    }
}

impl From<CastError<'_, '_>> for Unread {
    fn from(error: CastError<'_, '_>) -> Unread {
        Unread::Raised(error.into())
    }
}

impl From<ViewError> for Unread {
    fn from(error: ViewError) -> Unread {
        Unread::Refused(error)
    }
}
