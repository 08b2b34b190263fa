//! gridcall
//!
pub use cudarc;

pub use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, BorrowedView, BorrowedViewMut, DType, Element, Guard, Layout,
    Place, StreamRef, View, ViewError, ViewErrorKind,
};

mod arg;
mod call;
mod cell;
mod contract;
mod declaration;
mod device;
mod driver;
mod error;
mod kernel;
mod launch;
mod layout;
mod load;
mod params;
mod pointer;
mod vector;

pub use arg::KernelArg;
pub use device::device;
pub use driver::DriverCode;
pub use error::{
    ArgumentError, Axis, GeometryError, LaunchError, LaunchErrorKind, LoadError, LoadErrorKind,
};
pub use kernel::{Kernel, Safe, Unsafe};
pub use launch::{Block, Extent, Grid, Launch, cover};
pub use pointer::{DevicePointer, DevicePointerMut};
pub use vector::*;

/// For the code that the macros generate. Anything here may change in any release.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        call::{Call, Finish, Span, launch},
        cell::KernelCell,
        contract::{Extents, Int, ViewOf},
        declaration::{Declaration, Image, Param},
        kernel::{Arguments, Declared, NoView},
        layout::{ArgLayout, Class, Expected, check_element, check_layout},
        params::Params,
    };
}
