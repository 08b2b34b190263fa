//! Why an array cannot be an argument as it is.

use std::{borrow::Cow, error::Error as StdError, fmt};

use crate::DType;

/// Why an array cannot be seen, acquired or released as asked.
///
/// Says nothing of kernels and parameters: the launch adds their names.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct ViewError(Box<ViewErrorKind>);

/// What a [`ViewError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewErrorKind {
    /// The array holds elements of another type.
    #[error("expected elements of {expected}, the array holds {found}; {cure}")]
    WrongType {
        /// What the kernel takes.
        expected: DType,
        /// What the array holds, in its own library's words.
        found: Cow<'static, str>,
        /// What to do, in the array's own library's words.
        cure: Cow<'static, str>,
    },
    /// The elements do not follow one another.
    #[error(
        "the array is not contiguous: shape {shape:?}, strides {strides:?} in elements; {cure}, or declare the parameter `Strided<T, N>`"
    )]
    NotContiguous {
        /// The number of elements along each dimension.
        shape: Vec<usize>,
        /// The distance between neighbours along each dimension, in elements.
        strides: Vec<isize>,
        /// What to do, in the array's own library's words.
        cure: &'static str,
    },
    /// The array may not be written.
    #[error("the kernel writes to it, but its owner lends it read-only; pass a writable copy")]
    ReadOnly,
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function, or the step that called it.
        call: &'static str,
        /// The error, as the binding in use shows it.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Another reason.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl ViewError {
    /// The array holds elements of another type than the kernel takes.
    ///
    /// ```
    /// use gridcall_view::{DType, ViewError};
    /// let error = ViewError::wrong_type(DType::I32, "torch.int64", "convert it first: `.to(torch.int32)`");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "expected elements of i32, the array holds torch.int64; convert it first: `.to(torch.int32)`"
    /// );
    /// ```
    #[must_use]
    #[cold]
    pub fn wrong_type(
        expected: DType,
        found: impl Into<Cow<'static, str>>,
        cure: impl Into<Cow<'static, str>>,
    ) -> ViewError {
        ViewErrorKind::WrongType {
            expected,
            found: found.into(),
            cure: cure.into(),
        }
        .into()
    }

    /// A driver call failed.
    #[must_use]
    #[cold]
    pub fn driver(call: &'static str, source: impl StdError + Send + Sync + 'static) -> ViewError {
        ViewErrorKind::Driver {
            call,
            source: Box::new(source),
        }
        .into()
    }

    /// Another reason, in words that follow "argument `x`: ".
    #[must_use]
    #[cold]
    pub fn other(reason: impl Into<Cow<'static, str>>) -> ViewError {
        ViewErrorKind::Other(reason.into()).into()
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &ViewErrorKind {
        &self.0
    }
}

impl From<ViewErrorKind> for ViewError {
    #[cold]
    fn from(kind: ViewErrorKind) -> ViewError {
        ViewError(Box::new(kind))
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
