//! The errors of a launch. All are made out of line, from the few values that each needs.

use std::{
    ffi::c_void,
    fmt::{self, Write},
};

use gridcall_view::{Layout, Place, ViewError, ViewErrorKind};

use super::node::FOREIGN;
use crate::{
    attributes::Attributes,
    cell::KernelCell,
    driver::DriverCode,
    error::{ArgumentError, LaunchError, LaunchErrorKind, LoadError, LoadErrorKind, OtherModule},
    graph::Failed,
    launch::Dims,
    load::{Loaded, Module},
};

#[cold]
#[inline(never)]
pub(super) fn error(kernel: &Loaded, kind: LaunchErrorKind) -> LaunchError {
    LaunchError::new(kernel.declaration.kernel, kind)
}

#[cold]
#[inline(never)]
pub(super) fn not_loaded(kernel: &KernelCell, safe: bool, error: LoadError) -> LaunchError {
    let name = kernel.declaration().kernel;
    match error.kind() {
        // Loaded, it would be refused all the same.
        LoadErrorKind::Capturing { .. } if safe => {
            LaunchError::new(name, LaunchErrorKind::Capturing)
        }
        _ => LaunchError::of_load(name, error),
    }
}

#[cold]
#[inline(never)]
pub(super) fn refused(
    kernel: &Loaded,
    call: &'static str,
    code: DriverCode,
    explanation: String,
) -> LaunchError {
    let kind = if code.breaks_context() {
        LaunchErrorKind::Broken(code)
    } else {
        LaunchErrorKind::Driver {
            call,
            code,
            explanation,
        }
    };
    error(kernel, kind)
}

#[cold]
#[inline(never)]
pub(super) fn not_launched(
    kernel: &Loaded,
    (call, code): Failed,
    dims: [u32; 7],
    attributes: Option<&Attributes<'_>>,
) -> LaunchError {
    let attributes = attributes.filter(|attributes| attributes.any());
    let explanation = kernel.explain(Dims::from_numbers(dims), attributes);
    refused(kernel, call, code, explanation)
}

#[cold]
#[inline(never)]
pub(super) fn argument(kernel: &Loaded, index: usize, reason: ArgumentError) -> LaunchError {
    let param = &kernel.declaration.params[index];
    let kind = LaunchErrorKind::Argument {
        index,
        name: param.name,
        ty: param.ty,
        error: reason,
    };
    error(kernel, kind)
}

/// A function of another module than the kernel's, read from a static of this name.
#[cold]
#[inline(never)]
pub(super) fn other_module(
    kernel: &Loaded,
    index: usize,
    from: &'static str,
    module: &Module,
) -> LaunchError {
    let other = OtherModule::new(from, module, kernel.module());
    argument(kernel, index, ArgumentError::OtherModule(other))
}

#[cold]
#[inline(never)]
pub(super) fn view_error(kernel: &Loaded, index: usize, error: ViewError) -> LaunchError {
    argument(kernel, index, ArgumentError::View(error))
}

#[cold]
#[inline(never)]
pub(super) fn read_only(kernel: &Loaded, index: usize) -> LaunchError {
    view_error(kernel, index, ViewErrorKind::ReadOnly.into())
}

/// An array that may not be what the kernel takes, in the parts that the view of it need not be kept
/// for.
pub(super) struct Doubtful<'v> {
    pub(super) pointer: u64,
    pub(super) layout: Layout<'v>,
    pub(super) contiguous: bool,
    pub(super) place: Place,
    /// Whether that is known to be the stream's.
    pub(super) here: bool,
    /// The context of the stream, and its device.
    pub(super) context: *mut c_void,
    pub(super) stream: i32,
    pub(super) align: usize,
    /// What makes the array contiguous, in its library's words.
    pub(super) cure: &'static str,
}

impl Doubtful<'_> {
    /// Out of line with all that is compared here alone: of most arrays it then is not even read.
    #[cold]
    #[inline(never)]
    pub(super) fn check(self, kernel: &Loaded, index: usize) -> Result<(), LaunchError> {
        let elsewhere = !self.here
            && match self.place {
                Place::Context { context, .. } => context != self.context,
                Place::Device(device) => device != self.stream,
                Place::Everywhere => self.stream == FOREIGN,
                _ => true,
            };
        let aligned = self.pointer & (self.align as u64 - 1) == 0;
        if !elsewhere && self.contiguous && aligned {
            return Ok(());
        }
        Err(self.explain(kernel, index, elsewhere))
    }

    fn explain(self, kernel: &Loaded, index: usize, elsewhere: bool) -> LaunchError {
        let stream = self.stream;
        let reason = match (self.place, self.layout) {
            _ if elsewhere && stream == FOREIGN => ArgumentError::View(ViewError::other(
                "the array is not one of the graph; give it to the graph by `read`, `write` or `own`, and pass what that returns",
            )),
            (Place::Context { device, .. }, _) if elsewhere && device == stream => {
                ArgumentError::OtherContext { device }
            }
            (Place::Context { device: array, .. } | Place::Device(array), _) if elsewhere => {
                ArgumentError::OtherDevice { array, stream }
            }
            _ if elsewhere => ArgumentError::View(ViewError::other(
                "the array is in a place that is not known",
            )),
            _ if self.pointer & (self.align as u64 - 1) != 0 => ArgumentError::Misaligned {
                found: 1 << self.pointer.trailing_zeros(),
                needed: self.align,
            },
            (_, Layout::Strided { shape, strides }) => {
                let kind = ViewErrorKind::NotContiguous {
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                    cure: self.cure,
                };
                ArgumentError::View(kind.into())
            }
            _ => ArgumentError::View(ViewError::other("the array's layout is not known")),
        };
        argument(kernel, index, reason)
    }
}

#[cold]
#[inline(never)]
pub(super) fn unmet(
    kernel: &Loaded,
    index: usize,
    values: &[(&str, &dyn fmt::Display)],
) -> LaunchError {
    let mut text = String::new();
    for (position, (name, value)) in values.iter().enumerate() {
        let separator = match position {
            0 => "",
            _ if position + 1 == values.len() => " and ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{name} is {value}");
    }
    if values.is_empty() {
        text += "it does not hold";
    }
    let kind = LaunchErrorKind::Requirement {
        requirement: kernel.declaration.requires[index],
        values: text,
    };
    error(kernel, kind)
}
