//! A grid, a block or a size of shared memory that is not possible.

use std::{borrow::Cow, fmt};

use cudarc::driver::DriverError;

use crate::{
    driver::DriverCode,
    launch::{Block, Grid},
};

/// Why a grid, block or size of shared memory is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// An explicit grid has no blocks.
    #[error("grid.{axis} is 0; only a launch made by `cover` may be empty")]
    ZeroGrid {
        /// The axis.
        axis: Axis,
    },
    /// A block has no threads.
    #[error("block.{axis} is 0; a block has at least one thread along each axis")]
    ZeroBlock {
        /// The axis.
        axis: Axis,
    },
    /// The extent given to `cover` is negative.
    #[error("cannot cover {extent} elements along {axis}; an extent is 0 or more")]
    NegativeExtent {
        /// The axis.
        axis: Axis,
        /// The extent.
        extent: i64,
    },
    /// Too many blocks along one axis.
    #[error(
        "grid.{axis} is {blocks}, the device allows {limit}; make the block larger, or let each thread do more"
    )]
    GridTooLarge {
        /// The axis.
        axis: Axis,
        /// The number of blocks.
        blocks: u64,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads along one axis.
    #[error("block.{axis} is {threads}, the device allows {limit}; make the block smaller")]
    BlockTooLarge {
        /// The axis.
        axis: Axis,
        /// The number of threads.
        threads: u32,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads in a block for any kernel.
    #[error("the block has {threads} threads, the device allows {limit}; make the block smaller")]
    TooManyThreads {
        /// The number of threads.
        threads: u64,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads in a block for this kernel.
    #[error("the block has {threads} threads, the kernel can run at most {limit} on this device ({registers} registers a thread{}); make the block smaller, or compile the kernel with `__launch_bounds__({threads})`", bound(*launch_bound))]
    TooManyThreadsForKernel {
        /// The number of threads.
        threads: u64,
        /// The kernel's limit.
        limit: u32,
        /// The registers that one thread takes.
        registers: u32,
        /// The kernel's `.maxntid`, if it has one.
        launch_bound: Option<[u32; 3]>,
    },
    /// The kernel is made for another block.
    #[error("the block is {asked}, the kernel {} {fixed}; launch it in that block, which `cover` takes by itself", if *by_ptx { "is compiled for (.reqntid)" } else { "declares #[block] as" })]
    OtherBlock {
        /// The block asked for.
        asked: Block,
        /// The kernel's block.
        fixed: Block,
        /// Whether the PTX fixes it, not the declaration.
        by_ptx: bool,
    },
    /// More dynamic shared memory than the device has.
    #[error(
        "the launch asks for {asked} bytes of dynamic shared memory; this device allows {limit} a block, of which the kernel takes {fixed} itself; ask for at most {}",
        limit.saturating_sub(*fixed)
    )]
    SharedMemory {
        /// The bytes asked for.
        asked: u64,
        /// The device's limit for a block in bytes.
        limit: u32,
        /// The kernel's static shared memory in bytes.
        fixed: u32,
    },
    /// The launch is along other axes than the kernel is declared for.
    #[error("{}", rank(*declared, *covered, *grid, *block))]
    OtherRank {
        /// `#[rank(..)]`.
        declared: u8,
        /// The axes of the extent that is covered; of an exact grid, those declared.
        covered: usize,
        /// The grid.
        grid: Grid,
        /// The block.
        block: Block,
    },
    /// The context could not be made current, to ask the driver for occupancy.
    #[error("cannot use the kernel's context: {0}")]
    Context(DriverError),
    /// The driver did not say how many blocks run at a time.
    #[error("{call} failed: {code}")]
    Occupancy {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
    },
    /// The driver cannot say how many blocks run at a time.
    #[error("the CUDA driver is too old: it has no `{call}`; update it, or name the block")]
    NoOccupancy {
        /// The function that is missing.
        call: &'static str,
    },
    /// The driver refused the opt-in for shared memory.
    #[error("cannot opt in to {asked} bytes of dynamic shared memory: {code}")]
    OptIn {
        /// The bytes asked for.
        asked: u32,
        /// The driver's answer.
        code: DriverCode,
    },
}

/// An axis of a grid or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The fastest axis.
    X,
    /// The second axis.
    Y,
    /// The third axis.
    Z,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        })
    }
}

fn rank(declared: u8, covered: usize, grid: Grid, block: Block) -> String {
    if covered != usize::from(declared) {
        return format!(
            "the launch covers an extent along {}, the kernel is declared #[rank({declared})]; cover as many axes",
            axes(covered)
        );
    }
    format!(
        "a grid of {grid} in blocks of {block} extends beyond {}, the kernel is declared #[rank({declared})] and would do its work several times; launch along no other axis",
        axes(covered)
    )
}

fn axes(rank: usize) -> &'static str {
    match rank {
        1 => "x alone",
        2 => "x and y",
        _ => "x, y and z",
    }
}

fn bound(maxntid: Option<[u32; 3]>) -> Cow<'static, str> {
    match maxntid {
        None => Cow::Borrowed(""),
        Some([x, y, z]) => Cow::Owned(format!(", launch bound {x} × {y} × {z}")),
    }
}
