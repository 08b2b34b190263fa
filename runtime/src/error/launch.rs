//! A launch that is refused, or fails.

use std::fmt;

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use super::{ArgumentError, AttributeError, GeometryError, LoadError, LoadErrorKind, broken};
use crate::{describe::LaunchDescription, driver::DriverCode, symbol::SymbolError};

/// Why a kernel was not launched, or, for [`LaunchErrorKind::Finish`] and
/// [`LaunchErrorKind::Fault`], what went wrong after it was.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kernel: &'static str,
    kind: LaunchErrorKind,
}

/// What a [`LaunchError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchErrorKind {
    /// The kernel could not be loaded.
    #[error("{0}")]
    Load(LoadError),
    /// An error of the past, stored in the context by a call that could not return it.
    #[error(
        "an earlier error is stored in the context: {0}; it is not of this launch, which was not made, and everything enqueued since is in doubt"
    )]
    Earlier(DriverError),
    /// The context is broken for good.
    #[error("{}", broken(*.0))]
    Broken(DriverCode),
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph; events recorded in a capture would poison every later use of the arrays, so safe launches refuse it"
    )]
    Capturing,
    /// The handle was loaded in another context than the stream's.
    #[error(
        "the kernel was loaded in a context of device {kernel}, the stream belongs to another context, of device {stream}; load it with that stream's context"
    )]
    OtherContext {
        /// The device of the context in which the kernel was loaded.
        kernel: usize,
        /// The stream's device.
        stream: usize,
    },
    /// An argument cannot be used.
    #[error("argument `{name}` (parameter {index}, {ty}): {error}")]
    Argument {
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Its declared type.
        ty: &'static str,
        /// Why not.
        error: ArgumentError,
    },
    /// A symbol that the kernel uses could not be ordered with its other uses.
    #[error("{0}")]
    Symbol(SymbolError),
    /// A `#[requires]` does not hold.
    #[error("the launch needs `{requirement}`, but {values}")]
    Requirement {
        /// The expression, as declared.
        requirement: &'static str,
        /// What the names in it stand for.
        values: String,
    },
    /// The grid, the block or the shared memory is not possible.
    #[error("{0}")]
    Geometry(GeometryError),
    /// A launch attribute is not possible.
    #[error("{0}")]
    Attribute(AttributeError),
    /// The driver refused the launch.
    #[error("{call} failed: {code}{explanation}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
        /// What it was asked for and what its limits are, or empty.
        explanation: String,
    },
    /// The kernel was launched, but its use of an argument could not be recorded; the stream has
    /// been synchronised, so that nothing is freed too early.
    #[error(
        "the kernel was launched, but its use of argument `{name}` (parameter {index}) could not be recorded: {error}"
    )]
    Finish {
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Why not.
        error: ViewError,
    },
    /// With `GRIDCALL_SYNC=1`: the kernel ran and failed.
    #[error("declared at {file}:{line}, failed while it ran: {code}\n  {launch}")]
    Fault {
        /// The source file of the declaration.
        file: &'static str,
        /// The line of the declaration.
        line: u32,
        /// What the synchronisation answered.
        code: DriverCode,
        /// What was launched.
        launch: Box<LaunchDescription>,
    },
}

impl LaunchError {
    #[cold]
    pub(crate) fn new(kernel: &'static str, kind: LaunchErrorKind) -> LaunchError {
        LaunchError(Box::new(Inner { kernel, kind }))
    }

    /// The error of a launch whose kernel could not be loaded.
    #[cold]
    pub(crate) fn of_load(kernel: &'static str, error: LoadError) -> LaunchError {
        let kind = match *error.kind() {
            LoadErrorKind::Earlier(earlier) => LaunchErrorKind::Earlier(earlier),
            LoadErrorKind::Broken(code) => LaunchErrorKind::Broken(code),
            _ => LaunchErrorKind::Load(error),
        };
        LaunchError::new(kernel, kind)
    }

    /// The kernel's name in Rust.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        self.0.kernel
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &LaunchErrorKind {
        &self.0.kind
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // What cannot be loaded is named there.
            LaunchErrorKind::Load(error) => error.fmt(f),
            kind => write!(f, "kernel `{}`: {kind}", self.kernel),
        }
    }
}

impl From<AttributeError> for LaunchErrorKind {
    fn from(error: AttributeError) -> LaunchErrorKind {
        LaunchErrorKind::Attribute(error)
    }
}

impl From<GeometryError> for LaunchErrorKind {
    fn from(error: GeometryError) -> LaunchErrorKind {
        LaunchErrorKind::Geometry(error)
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
