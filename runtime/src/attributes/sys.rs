//! The driver's form of launch attributes.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::CUevent;

use super::window::SysWindow;

/// The attributes of one launch in the driver's form.
pub(crate) struct SysAttributes {
    list: [SysAttribute; SysAttributes::MOST],
    count: usize,
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SysAttribute {
    /// `CUlaunchAttributeID`.
    pub(crate) id: c_uint,
    pad: [u8; 4],
    pub(crate) value: SysValue,
}

/// `CUlaunchAttributeValue`, as far as it is used.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union SysValue {
    pad: [u64; 8],
    pub(super) window: SysWindow,
    pub(super) cooperative: c_int,
    pub(super) cluster: [c_uint; 3],
    pub(super) scheduling: c_uint,
    pub(super) serialization: c_int,
    pub(super) event: SysEvent,
    pub(super) priority: c_int,
    pub(super) domain_map: [u8; 2],
    pub(super) domain: c_uint,
    pub(super) carveout: c_uint,
}

/// The value of both kinds of event.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct SysEvent {
    pub(super) event: CUevent,
    pub(super) flags: c_int,
    /// Not there for a launch-completion event.
    pub(super) at_block_start: c_int,
}

impl SysAttributes {
    const MOST: usize = 12;

    /// None.
    pub(super) const NONE: SysAttributes = SysAttributes {
        list: [SysAttribute::IGNORE; SysAttributes::MOST],
        count: 0,
    };

    /// Those that are set.
    pub(crate) fn as_slice(&self) -> &[SysAttribute] {
        &self.list[..self.count]
    }

    pub(crate) fn count(&self) -> c_uint {
        c_uint::try_from(self.as_slice().len()).unwrap_or(0)
    }

    /// The value of one more, which has this number (`CUlaunchAttributeID`).
    pub(super) fn push(&mut self, id: c_uint) -> &mut SysValue {
        let next = &mut self.list[self.count];
        self.count += 1;
        next.id = id;
        &mut next.value
    }
}

impl SysAttribute {
    const IGNORE: SysAttribute = SysAttribute {
        id: 0,
        pad: [0; 4],
        value: SysValue { pad: [0; 8] },
    };
}
