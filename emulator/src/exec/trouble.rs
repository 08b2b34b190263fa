//! What stopped a thread, before anyone added where: turned into a [`Fault`](super::Fault) by the warp.

use super::fault::FaultKind;

/// What stopped a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: FaultKind,
    /// The lane to blame; that of the instruction's first lane if there is none.
    pub(crate) lane: Option<usize>,
    pub(crate) address: Option<u64>,
    pub(crate) message: String,
    /// Nothing has happened yet: the instruction can be run again.
    pub(crate) retries: bool,
    /// The instruction to blame, if it is not the one that found out.
    pub(crate) pc: Option<u32>,
}

impl Trouble {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            lane: None,
            address: None,
            message: message.into(),
            retries: false,
            pc: None,
        }
    }

    pub(crate) fn at(mut self, lane: usize, address: u64) -> Self {
        self.lane = Some(lane);
        self.address = Some(address);
        self
    }

    pub(crate) fn by(mut self, lane: usize) -> Self {
        self.lane = Some(lane);
        self
    }

    pub(crate) fn uninitialised(space: &str, address: u64, size: u32) -> Self {
        let mut trouble = Self::new(
            FaultKind::Uninitialised,
            format!(
                "load of {size} bytes of {space} memory at {address:#x}, none of which was written"
            ),
        );
        trouble.address = Some(address);
        trouble
    }

    pub(crate) fn misaligned(space: &str, address: u64, size: u32) -> Self {
        Self::new(
            FaultKind::Misaligned,
            format!(
                "access of {size} bytes of {space} memory at {address:#x}, which is no multiple of {size}"
            ),
        )
    }
}
