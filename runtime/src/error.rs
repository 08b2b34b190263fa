//! What can go wrong, in the user's terms. Every message is made here.

mod argument;
mod attribute;
mod buffer;
mod geometry;
mod launch;
mod load;
mod releases;
mod timing;

pub use argument::{ArgumentError, OtherModule};
pub use attribute::AttributeError;
pub use buffer::{BufferError, BufferErrorKind};
pub use geometry::{Axis, GeometryError};
pub use launch::{LaunchError, LaunchErrorKind};
pub use load::{LoadError, LoadErrorKind};
pub use timing::TimingError;

use std::path::Path;

use crate::driver::DriverCode;

fn broken(code: DriverCode) -> String {
    format!(
        "the context is broken: an earlier kernel failed in it with {code}; nothing runs in it any more, so the error is not of this call (GRIDCALL_SYNC=1 finds the kernel)"
    )
}

/// The folder in which a file was looked for and not found.
pub(crate) fn where_from(path: &str, error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::NotFound
        && Path::new(path).is_relative()
        && let Ok(folder) = std::env::current_dir()
    {
        format!(
            "; the path starts at the working folder, {}",
            folder.display()
        )
    } else {
        String::new()
    }
}
