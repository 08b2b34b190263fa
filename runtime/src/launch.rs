//! How many blocks of how many threads: what a caller says, and what it becomes for one kernel.

use cudarc::driver::LaunchConfig;

use crate::{
    error::{Axis, GeometryError},
    load::{FixedBlock, Loaded},
};

/// The shape of a launch, as the caller gives it.
///
/// Made by [`cover`] from the extent of the data, or by [`Launch::new`] from a grid and a block.
///
/// ```
/// use gridcall::{Block, Grid, Launch, cover};
/// let by_extent = cover((640, 480));
/// let exact = Launch::new(Grid::from(12), Block::from((32, 8))).shared_mem_bytes(4096);
/// # let _ = (by_extent, exact);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    shape: Shape,
    block: Option<Block>,
    shared_mem_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// At least so many threads along each axis; negative where the caller's number was.
    Cover {
        threads: [i64; 3],
        rank: usize,
    },
    Exact(Grid),
}

/// The number of blocks of a launch along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Along x, the fastest axis.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// The number of threads of a block along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Along x, the fastest axis.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// At least one thread for each element of `extent`: a length, `(width, height)` or
/// `(width, height, depth)`, in elements; width is along x.
///
/// The block is the one the kernel declares (`#[block(..)]`), else the one its PTX requires
/// (`.reqntid`), else 256 threads (16 × 16 in two dimensions, 8 × 8 × 4 in three) or as many as
/// the kernel's launch bound allows; [`Launch::block`] sets another. An extent of 0 launches
/// nothing, and is no error.
///
/// ```
/// use gridcall::cover;
/// # let (width, height): (u32, u32) = (640, 480);
/// let one = cover(1_000_000);
/// let image = cover((width, height));
/// # let _ = (one, image);
/// ```
#[must_use]
#[inline(always)]
pub fn cover(extent: impl Extent) -> Launch {
    let (threads, rank) = extent.threads();
    Launch {
        shape: Shape::Cover { threads, rank },
        block: None,
        shared_mem_bytes: 0,
    }
}

/// What [`cover`] takes: an integer, or two or three of them.
pub trait Extent: sealed::Extent {}

impl<T: sealed::Extent> Extent for T {}

impl Launch {
    /// Exactly `grid` blocks of `block` threads.
    ///
    /// ```
    /// use gridcall::Launch;
    /// let launch = Launch::new((4, 4), 256);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn new(grid: impl Into<Grid>, block: impl Into<Block>) -> Launch {
        Launch {
            shape: Shape::Exact(grid.into()),
            block: Some(block.into()),
            shared_mem_bytes: 0,
        }
    }

    /// The same launch with another block.
    ///
    /// ```
    /// let launch = gridcall::cover(1000).block(128);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn block(mut self, block: impl Into<Block>) -> Launch {
        self.block = Some(block.into());
        self
    }

    /// The same launch with so many bytes of dynamic shared memory a block.
    ///
    /// More than the default limit (48 KiB with the kernel's static shared memory) is opted in to
    /// by the launch itself, up to what the device allows.
    ///
    /// ```
    /// let launch = gridcall::cover(1000).shared_mem_bytes(64 * 1024);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn shared_mem_bytes(mut self, bytes: u32) -> Launch {
        self.shared_mem_bytes = bytes;
        self
    }
}

impl Launch {
    #[inline(always)]
    pub(crate) fn dynamic_shared_mem_bytes(&self) -> u32 {
        self.shared_mem_bytes
    }
}

/// What a launch takes for its shape: what [`cover`] gives, a [`Launch`], `(grid, block)`, or
/// cudarc's [`LaunchConfig`].
///
/// A type of your own that is a [`Launch`] can be passed as it is, too:
///
/// ```
/// use gridcall::{Launch, LaunchShape, cover};
///
/// struct Image { width: u32, height: u32 }
///
/// impl From<Image> for Launch {
///     fn from(image: Image) -> Launch {
///         cover((image.width, image.height)).block((32, 8))
///     }
/// }
///
/// impl LaunchShape for Image {}
/// # let launch: Launch = Image { width: 640, height: 480 }.into();
/// # assert_eq!(launch, cover((640, 480)).block((32, 8)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a launch",
    label = "write `cover(n)`, or `(grid, block)`",
    note = "`cover` launches at least one thread for each element; `(grid, block)` exactly so many blocks of so many threads"
)]
pub trait LaunchShape: Into<Launch> {}

impl LaunchShape for Launch {}

impl LaunchShape for LaunchConfig {}

impl<G: Into<Grid>, B: Into<Block>> LaunchShape for (G, B) {}

impl From<LaunchConfig> for Launch {
    fn from(config: LaunchConfig) -> Launch {
        Launch::new(config.grid_dim, config.block_dim).shared_mem_bytes(config.shared_mem_bytes)
    }
}

impl<G: Into<Grid>, B: Into<Block>> From<(G, B)> for Launch {
    fn from((grid, block): (G, B)) -> Launch {
        Launch::new(grid, block)
    }
}

impl From<u32> for Grid {
    #[inline(always)]
    fn from(x: u32) -> Grid {
        Grid { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Grid {
    #[inline(always)]
    fn from((x, y): (u32, u32)) -> Grid {
        Grid { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Grid {
    #[inline(always)]
    fn from((x, y, z): (u32, u32, u32)) -> Grid {
        Grid { x, y, z }
    }
}

impl From<Grid> for [u32; 3] {
    #[inline(always)]
    fn from(grid: Grid) -> [u32; 3] {
        [grid.x, grid.y, grid.z]
    }
}

impl From<Block> for [u32; 3] {
    #[inline(always)]
    fn from(block: Block) -> [u32; 3] {
        [block.x, block.y, block.z]
    }
}

impl From<u32> for Block {
    #[inline(always)]
    fn from(x: u32) -> Block {
        Block { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Block {
    #[inline(always)]
    fn from((x, y): (u32, u32)) -> Block {
        Block { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Block {
    #[inline(always)]
    fn from((x, y, z): (u32, u32, u32)) -> Block {
        Block { x, y, z }
    }
}

impl Block {
    /// The number of threads, which may exceed what any device allows.
    pub(crate) fn threads(self) -> u64 {
        // Three factors below 2^32 may overflow a u64; no limit is near that.
        u64::from(self.x)
            .saturating_mul(u64::from(self.y))
            .saturating_mul(u64::from(self.z))
    }
}

mod sealed {
    /// The threads wanted along each axis, and the number of axes that were given.
    pub trait Extent {
        fn threads(self) -> ([i64; 3], usize);
    }

    pub trait Length {
        fn threads(self) -> i64;
    }

    impl Length for u32 {
        #[inline(always)]
        fn threads(self) -> i64 {
            i64::from(self)
        }
    }

    impl Length for i32 {
        #[inline(always)]
        fn threads(self) -> i64 {
            i64::from(self)
        }
    }

    impl Length for i64 {
        #[inline(always)]
        fn threads(self) -> i64 {
            self
        }
    }

    impl Length for u64 {
        #[inline(always)]
        fn threads(self) -> i64 {
            // What exceeds an i64 exceeds every grid, and is refused as that.
            i64::try_from(self).unwrap_or(i64::MAX)
        }
    }

    impl Length for usize {
        #[inline(always)]
        fn threads(self) -> i64 {
            i64::try_from(self).unwrap_or(i64::MAX)
        }
    }

    impl<A: Length> Extent for A {
        #[inline(always)]
        fn threads(self) -> ([i64; 3], usize) {
            ([Length::threads(self), 1, 1], 1)
        }
    }

    impl<A: Length, B: Length> Extent for (A, B) {
        #[inline(always)]
        fn threads(self) -> ([i64; 3], usize) {
            ([self.0.threads(), self.1.threads(), 1], 2)
        }
    }

    impl<A: Length, B: Length, C: Length> Extent for (A, B, C) {
        #[inline(always)]
        fn threads(self) -> ([i64; 3], usize) {
            ([self.0.threads(), self.1.threads(), self.2.threads()], 3)
        }
    }
}

/// A launch resolved for one loaded kernel: within every limit that is known beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims {
    /// Holds a 0 only if the launch covers nothing.
    pub(crate) grid: Grid,
    pub(crate) block: Block,
    pub(crate) shared_mem_bytes: u32,
}

impl Dims {
    #[inline(always)]
    pub(crate) fn resolve(launch: Launch, kernel: &Loaded) -> Result<Dims, GeometryError> {
        let block = match launch.block {
            None => {
                let block = kernel.default_block(match launch.shape {
                    Shape::Cover { rank, .. } => rank,
                    Shape::Exact(_) => 1,
                });
                if !kernel.default_block_fits {
                    check_block(block, kernel)?;
                }
                block
            }
            Some(block) => {
                check_block(block, kernel)?;
                block
            }
        };
        let grid = match launch.shape {
            Shape::Exact(grid) => {
                check_grid(grid, kernel)?;
                grid
            }
            Shape::Cover { threads, rank: 1 } => {
                Grid::from(blocks(threads[0], block.x, kernel.limits.grid[0], Axis::X)?)
            }
            Shape::Cover { threads, .. } => cover_all(threads, block, kernel.limits.grid)?,
        };
        if launch.shared_mem_bytes > kernel.shared_mem_granted() {
            kernel.grant_shared_mem(launch.shared_mem_bytes)?;
        }
        Ok(Dims {
            grid,
            block,
            shared_mem_bytes: launch.shared_mem_bytes,
        })
    }

    /// The numbers alone, to be handed to a function that is not inlined: the `Dims` itself then
    /// need not exist in memory.
    #[inline(always)]
    pub(crate) fn numbers(&self) -> [u32; 7] {
        let Dims {
            grid,
            block,
            shared_mem_bytes,
        } = self;
        [
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            *shared_mem_bytes,
        ]
    }

    pub(crate) fn from_numbers(numbers: [u32; 7]) -> Dims {
        let [x, y, z, block_x, block_y, block_z, shared_mem_bytes] = numbers;
        Dims {
            grid: Grid { x, y, z },
            block: Block {
                x: block_x,
                y: block_y,
                z: block_z,
            },
            shared_mem_bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Only a cover can hold a 0; a cover of rank 1 holds it along x.
        self.grid.x == 0 || self.grid.y == 0 || self.grid.z == 0
    }
}

#[inline(always)]
fn blocks(threads: i64, block: u32, limit: u32, axis: Axis) -> Result<u32, GeometryError> {
    let Ok(threads) = u64::try_from(threads) else {
        return Err(GeometryError::NegativeExtent {
            axis,
            extent: threads,
        });
    };
    let blocks = threads.div_ceil(u64::from(block));
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= limit => Ok(blocks),
        _ => Err(GeometryError::GridTooLarge {
            axis,
            blocks,
            limit,
        }),
    }
}

fn cover_all(threads: [i64; 3], block: Block, limits: [u32; 3]) -> Result<Grid, GeometryError> {
    Ok(Grid {
        x: blocks(threads[0], block.x, limits[0], Axis::X)?,
        y: blocks(threads[1], block.y, limits[1], Axis::Y)?,
        z: blocks(threads[2], block.z, limits[2], Axis::Z)?,
    })
}

fn check_grid(grid: Grid, kernel: &Loaded) -> Result<(), GeometryError> {
    let axes = [(Axis::X, grid.x), (Axis::Y, grid.y), (Axis::Z, grid.z)];
    for ((axis, blocks), limit) in axes.into_iter().zip(kernel.limits.grid) {
        if blocks == 0 {
            return Err(GeometryError::ZeroGrid { axis });
        }
        if blocks > limit {
            return Err(GeometryError::GridTooLarge {
                axis,
                blocks: u64::from(blocks),
                limit,
            });
        }
    }
    Ok(())
}

fn check_block(block: Block, kernel: &Loaded) -> Result<(), GeometryError> {
    let limits = &kernel.limits;
    if let Some(FixedBlock {
        block: fixed,
        by_ptx,
    }) = kernel.fixed_block
        && fixed != block
    {
        return Err(GeometryError::OtherBlock {
            asked: block,
            fixed,
            by_ptx,
        });
    }
    let axes = [(Axis::X, block.x), (Axis::Y, block.y), (Axis::Z, block.z)];
    for ((axis, threads), limit) in axes.into_iter().zip(limits.block) {
        if threads == 0 {
            return Err(GeometryError::ZeroBlock { axis });
        }
        if threads > limit {
            return Err(GeometryError::BlockTooLarge {
                axis,
                threads,
                limit,
            });
        }
    }
    let threads = block.threads();
    if threads > u64::from(limits.threads_per_block) {
        return Err(GeometryError::TooManyThreads {
            threads,
            limit: limits.threads_per_block,
        });
    }
    if threads > u64::from(kernel.max_threads_per_block) {
        return Err(GeometryError::TooManyThreadsForKernel {
            threads,
            limit: kernel.max_threads_per_block,
            registers: kernel.registers,
            launch_bound: kernel.maxntid,
        });
    }
    Ok(())
}
