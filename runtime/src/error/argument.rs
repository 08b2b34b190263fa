//! An array, or a function of the device, that cannot be an argument.

use std::fmt;

use gridcall_view::ViewError;

use crate::load::Module;

/// Why an array cannot be an argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The array says so.
    #[error("{0}")]
    View(ViewError),
    /// The array is on another device.
    #[error(
        "the array is on device {array}, the stream is on device {stream}; launch on a stream of device {array}, or copy the array"
    )]
    OtherDevice {
        /// The array's device.
        array: i32,
        /// The stream's device.
        stream: i32,
    },
    /// The array is on the stream's device, in another context.
    #[error(
        "the array belongs to another context of device {device} than the stream; launch on a stream of the array's context, or copy the array"
    )]
    OtherContext {
        /// The device of both.
        device: i32,
    },
    /// The first element is not aligned as the kernel needs.
    #[error(
        "the array begins at an address that is aligned to {found} bytes only, the kernel needs {needed}; views that begin inside a buffer must begin at a multiple of that"
    )]
    Misaligned {
        /// The largest power of two that divides the address.
        found: u64,
        /// The alignment needed, in bytes.
        needed: usize,
    },
    /// The array overlaps another that the kernel takes.
    #[error(
        "the array overlaps argument `{other}` (parameter {other_index}), and the kernel writes to one of them; pass separate arrays, or declare #[may_alias(..)] if the kernel allows it"
    )]
    Overlap {
        /// The other parameter's name.
        other: &'static str,
        /// The other parameter, from 0.
        other_index: usize,
    },
    /// The device function is of another module than the kernel.
    #[error("{0}")]
    OtherModule(OtherModule),
}

/// A device function of another module than the one that would call it.
///
/// Its address means nothing there: GPUs count the functions of each module.
#[derive(Clone, Debug)]
pub struct OtherModule {
    from: &'static str,
    function: String,
    module: String,
}

impl OtherModule {
    #[cold]
    pub(crate) fn new(from: &'static str, function: &Module, module: &Module) -> OtherModule {
        OtherModule {
            from,
            function: function.to_string(),
            module: module.to_string(),
        }
    }

    /// The static that the function was read from.
    #[must_use]
    pub fn read_from(&self) -> &'static str {
        self.from
    }
}

impl fmt::Display for OtherModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherModule {
            from,
            function,
            module,
        } = self;
        write!(
            f,
            "the function was read from `{from}` of {function}, and would be called in "
        )?;
        if function == module {
            f.write_str("another loading of it")?;
        } else {
            f.write_str(module)?;
        }
        write!(
            f,
            ", where its address means another function or none; read `{from}` of that module: by `get` with a stream of its context, or by `load_from` of the `Module` that the kernel was taken from"
        )
    }
}
