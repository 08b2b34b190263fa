//! What can go wrong with a symbol, in the user's terms.

use std::fmt;

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use crate::error::{LoadError, OtherModule};

/// Why a symbol could not be read or written, or a kernel that uses it not be launched.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct SymbolError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    symbol: String,
    kind: SymbolErrorKind,
}

/// What a [`SymbolError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolErrorKind {
    /// Its module could not be loaded.
    #[error("{0}")]
    Load(LoadError),
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, which would use the symbol at times that nobody can wait for; end the capture first, or use another stream"
    )]
    Capturing,
    /// The handle was loaded in another context than the stream's.
    #[error(
        "it was loaded in a context of device {symbol}, the stream belongs to another context, of device {stream}; load it with that stream's context"
    )]
    OtherContext {
        /// The device of the context in which the symbol was loaded.
        symbol: usize,
        /// The stream's device.
        stream: usize,
    },
    /// The device wrote bytes that are no value of the type.
    #[error("element {index} is no valid `{ty}`; read it with `read_bytes` to see what it is")]
    Invalid {
        /// The first such element.
        index: usize,
        /// The type.
        ty: &'static str,
    },
    /// A pointer to a function is null.
    #[error(
        "function {index} of it is null; let the CUDA code initialise it with a function, or declare it `static mut` and `set` it"
    )]
    NoFunction {
        /// The first such element.
        index: usize,
    },
    /// A function of another module was to be put there.
    #[error("{0}")]
    OtherModule(OtherModule),
    /// A kernel writes the symbol, and takes it as an array that it reads.
    #[error(
        "the kernel writes it, and takes a view of it as an argument as well; pass a copy of it"
    )]
    Written,
    /// A node of a graph was to be made of a kernel that uses it.
    #[error(
        "it is declared `static mut`, and what a graph does when it is launched is not ordered with its other uses; launch the kernel on a stream"
    )]
    Node,
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
}

impl SymbolError {
    #[cold]
    pub(super) fn new(symbol: &str, kind: SymbolErrorKind) -> SymbolError {
        SymbolError(Box::new(Inner {
            symbol: symbol.to_owned(),
            kind,
        }))
    }

    /// The symbol's name.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.0.symbol
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &SymbolErrorKind {
        &self.0.kind
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // What cannot be loaded is named there.
            SymbolErrorKind::Load(error) => error.fmt(f),
            kind => write!(f, "symbol `{}`: {kind}", self.symbol),
        }
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SymbolError> for ViewError {
    #[cold]
    fn from(error: SymbolError) -> ViewError {
        ViewError::other(error.to_string())
    }
}
