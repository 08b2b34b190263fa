//! The state spaces, and their windows in generic address space.
//!
//! Shared, local and parameter memory have windows above all addresses a process can have, so that no
//! pointer of the host or the device is taken for one. Global and constant addresses are generic as they are.

/// Where the bytes of shared memory of a thread's own block begin.
pub(crate) const SHARED: u64 = 1 << 48;
/// Where a thread's local memory begins.
pub(crate) const LOCAL: u64 = (1 << 48) + (1 << 44);
/// Where the kernel's parameters begin.
pub(crate) const PARAM: u64 = (1 << 48) + (2 << 44);
/// Where the addresses of functions begin.
pub(crate) const CODE: u64 = (1 << 48) + (3 << 44);
/// How far apart the shared memories of a cluster's blocks lie, in the window and in 32-bit addresses.
pub(crate) const SHARED_STRIDE: u64 = 1 << 24;

const WINDOW: u64 = 1 << 32;

/// The state space an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    /// Parameters: those of the kernel at their window, those of functions in local memory.
    Param,
}

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Global(u64),
    /// The rank of the block in its cluster, if not the thread's own, and the offset.
    Shared(Option<u32>, u64),
    Local(u64),
    Param(u64),
}

impl Space {
    /// Where an address of this space leads.
    pub(crate) fn place(self, address: u64) -> Place {
        match self {
            Self::Global | Self::Const => Place::Global(address),
            Self::Shared => shared(address),
            Self::Local => Place::Local(address),
            Self::Param if address >= PARAM => Place::Param(address - PARAM),
            Self::Param => Place::Local(address),
            Self::Generic => generic(address),
        }
    }

    /// The first address of the space's window in generic space.
    pub(crate) fn base(self) -> u64 {
        match self {
            Self::Shared => SHARED,
            Self::Local => LOCAL,
            // The address of a kernel's parameter already is a generic one.
            Self::Param | Self::Generic | Self::Global | Self::Const => 0,
        }
    }
}

fn generic(address: u64) -> Place {
    if address < SHARED {
        Place::Global(address)
    } else if address - SHARED < WINDOW {
        shared(address - SHARED)
    } else if address >= LOCAL && address - LOCAL < WINDOW {
        Place::Local(address - LOCAL)
    } else if address >= PARAM && address - PARAM < WINDOW {
        Place::Param(address - PARAM)
    } else {
        Place::Global(address)
    }
}

/// A 32-bit address of shared memory: of another block of the cluster, the rank and one in the upper bits.
fn shared(address: u64) -> Place {
    if address >> 32 != 0 {
        return Place::Shared(None, address);
    }
    let rank = u32::try_from(address / SHARED_STRIDE).unwrap_or(0);
    Place::Shared(rank.checked_sub(1), address % SHARED_STRIDE)
}

/// The 32-bit address of a byte of the shared memory of a block of the cluster.
pub(crate) fn mapped(rank: u32, offset: u64) -> u64 {
    (u64::from(rank) + 1) * SHARED_STRIDE + offset
}
