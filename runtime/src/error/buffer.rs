//! Memory, and what is done with it in order.

use std::fmt;

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use super::broken;
use crate::driver::DriverCode;

/// Why a buffer could not be made, copied, split, lent or freed, or an end not be awaited.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct BufferError(Box<BufferErrorKind>);

/// What a [`BufferError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferErrorKind {
    /// There is no memory for it.
    #[error("cannot allocate {bytes} bytes on device {device}: {source}")]
    Allocate {
        /// The bytes asked for.
        bytes: usize,
        /// The device.
        device: usize,
        /// The driver's answer.
        source: DriverError,
    },
    /// The elements asked for have more bytes than there are addresses.
    #[error("{len} elements of {size} bytes are more than can be addressed")]
    TooLarge {
        /// The number of elements.
        len: usize,
        /// The size of one in bytes.
        size: usize,
    },
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, which would use the buffer at times that nobody can wait for; end the capture first, or use another stream"
    )]
    Capturing,
    /// A stream that used the buffer is being captured, so that it cannot be waited for.
    #[error(
        "another stream that used the buffer is being captured into a graph, and cannot be waited for until the capture ends"
    )]
    UserCapturing,
    /// The stream belongs to another context than the buffer.
    #[error(
        "the buffer is in a context of device {buffer}, the stream belongs to another context, of device {stream}; copy it there with `clone_to`"
    )]
    OtherContext {
        /// The buffer's device.
        buffer: i32,
        /// The stream's device.
        stream: i32,
    },
    /// A range reaches beyond the end.
    #[error("the range {start}..{end} does not lie within {len} elements")]
    Range {
        /// Where the range begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The number of elements.
        len: usize,
    },
    /// Two lengths that must be equal are not.
    #[error("cannot copy {from} elements to {to}; take slices of one length")]
    Length {
        /// The number of elements to copy from.
        from: usize,
        /// The number of elements to copy to.
        to: usize,
    },
    /// The bytes are no whole number of elements of the type asked for, or not aligned for it.
    #[error(
        "{bytes} bytes at an address aligned to {aligned} cannot be seen as `{ty}`, of {size} bytes aligned to {align}"
    )]
    Cast {
        /// The bytes there are.
        bytes: usize,
        /// The largest power of two that divides the address.
        aligned: u64,
        /// The type.
        ty: &'static str,
        /// Its size in bytes.
        size: usize,
        /// Its alignment in bytes.
        align: usize,
    },
    /// The device wrote bytes that are no value of the type.
    #[error("element {index} is no valid `{ty}`; read it with `to_bytes` to see what it is")]
    Invalid {
        /// The first such element.
        index: usize,
        /// The type.
        ty: &'static str,
    },
    /// One device cannot reach another's memory.
    #[error(
        "device {to} cannot reach the memory of device {from}: {source}; copy it there with `clone_to`"
    )]
    NoPeer {
        /// The device whose memory it is.
        from: usize,
        /// The device that asked for it.
        to: usize,
        /// The driver's answer.
        source: DriverCode,
    },
    /// The buffer is empty or its memory not of a pool, so that no other device can be let in.
    #[error(
        "only memory from a pool can be shared with another device, and device {device} has none"
    )]
    NoPool {
        /// The buffer's device.
        device: usize,
    },
    /// The context is broken for good.
    #[error("{}", broken(DriverCode::from(*.0)))]
    Broken(DriverError),
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
    /// The time between two events could not be asked for.
    #[error("cuEventElapsedTime failed: {0}")]
    Elapsed(DriverCode),
    /// The future was polled again after it was ready.
    #[error("what was awaited has been given away already")]
    Taken,
    /// No thread could be started that looks for what is done.
    #[error("cannot start the thread that awaits the device: {0}")]
    Thread(std::io::Error),
}

impl BufferError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &BufferErrorKind {
        &self.0
    }

    pub(crate) fn is_capturing(&self) -> bool {
        matches!(
            *self.0,
            BufferErrorKind::Capturing | BufferErrorKind::UserCapturing
        )
    }
}

impl From<BufferErrorKind> for BufferError {
    #[cold]
    fn from(kind: BufferErrorKind) -> BufferError {
        BufferError(Box::new(kind))
    }
}

impl From<BufferError> for ViewError {
    #[cold]
    fn from(error: BufferError) -> ViewError {
        match *error.0 {
            BufferErrorKind::Driver { call, source } => ViewError::driver(call, source),
            kind => ViewError::other(kind.to_string()),
        }
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
