//! Why an object could not be read as an array.

use std::borrow::Cow;

use pyo3::{CastError, PyErr};

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
