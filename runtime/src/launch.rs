//! How many blocks of how many threads: what a caller says, and what it becomes for one kernel.

use std::fmt;

use cudarc::driver::{CudaEvent, LaunchConfig};

use crate::{
    attributes::{
        AccessPolicyWindow, Attributes, Cluster, ClusterSchedulingPolicy, MemSyncDomain,
        MemSyncDomainMap, SharedMemCarveout, Trigger,
    },
    error::{Axis, GeometryError},
    load::{FixedBlock, Loaded},
};

/// The shape of a launch, as the caller gives it, and what it asks for besides.
///
/// Made by [`cover`] from the extent of the data, by [`stride`] for kernels that loop over theirs,
/// or by [`Launch::new`] from a grid and a block. It borrows for `'e` the events that it records.
///
/// ```
/// use gridcall::{Block, Grid, Launch, cover};
/// let by_extent = cover((640, 480));
/// let exact = Launch::new(Grid::from(12), Block::from((32, 8))).shared::<f32>(1024);
/// # let _ = (by_extent, exact);
/// ```
///
/// # Attributes
///
/// [`cooperative`](Launch::cooperative), [`cluster`](Launch::cluster) and the methods after them ask
/// for [launch attributes]. What they need of kernel and device is checked before the driver is
/// called, and nothing is made smaller than it was asked for. Only a launch that asks for one is
/// made by `cuLaunchKernelEx`.
///
/// [launch attributes]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html#group__CUDA__EXEC_1gb9c891eb6bb8f4089758e64c9c976db9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch<'e> {
    shape: Shape,
    block: BlockChoice,
    shared_mem_bytes: u64,
    pub(crate) attributes: Attributes<'e>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// At least so many threads along each axis; negative where the caller's number was.
    Cover {
        threads: [i64; 3],
        rank: usize,
    },
    /// For a kernel that loops over so many elements.
    Stride(i64),
    Exact(Grid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockChoice {
    /// That of the kernel, or one that most kernels do well with.
    Default,
    /// The one with which most threads are at work.
    Occupancy,
    Exact(Block),
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
pub fn cover(extent: impl Extent) -> Launch<'static> {
    let (threads, rank) = extent.threads();
    Launch::of(Shape::Cover { threads, rank }, BlockChoice::Default)
}

/// Enough blocks to fill the device, for a kernel whose threads loop over `n` elements in strides of
/// the grid; and no more than `n` elements need.
///
/// A grid that fills the device has as many blocks as its multiprocessors run at a time, which
/// depends on the block and on shared memory; so it is a multiple of their number. The driver is
/// asked once. The block is chosen as by [`cover`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use gridcall::{kernel, stride};
///
/// #[kernel(ptx = "../kernels/grid.ptx")]
/// unsafe extern "C" {
///     /// y ← y + v, by a grid-stride loop
///     #[requires(y.len() >= n)]
///     safe fn grid_stride(y: &mut [f32], v: f32, n: i32);
/// }
///
/// let stream = gridcall::device(0)?.default_stream();
/// let n = 10_000_000;
/// let mut y = stream.alloc_zeros::<f32>(n)?;
/// grid_stride(&stream, stride(n), &mut y, 1.0, i32::try_from(n)?)?;
/// # Ok(())
/// # }
/// ```
#[must_use]
#[inline(always)]
pub fn stride(n: impl Length) -> Launch<'static> {
    Launch::of(Shape::Stride(n.threads()), BlockChoice::Default)
}

/// What [`cover`] takes: an integer, or two or three of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an extent to cover",
    label = "expected an integer of 32 or 64 bits, or two or three of them, as in `cover((w, h))`"
)]
pub trait Extent: sealed::Extent {}

impl<T: sealed::Extent> Extent for T {}

/// What [`stride`] takes: an integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of elements",
    label = "expected an integer of 32 or 64 bits"
)]
pub trait Length: sealed::Length {}

impl<T: sealed::Length> Length for T {}

impl Launch<'static> {
    #[inline(always)]
    const fn of(shape: Shape, block: BlockChoice) -> Launch<'static> {
        Launch {
            shape,
            block,
            shared_mem_bytes: 0,
            attributes: Attributes::NONE,
        }
    }

    /// Exactly `grid` blocks of `block` threads.
    ///
    /// ```
    /// use gridcall::Launch;
    /// let launch = Launch::new((4, 4), 256);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn new(grid: impl Into<Grid>, block: impl Into<Block>) -> Launch<'static> {
        Launch::of(Shape::Exact(grid.into()), BlockChoice::Exact(block.into()))
    }
}

impl<'e> Launch<'e> {
    /// The same launch with another block.
    ///
    /// ```
    /// let launch = gridcall::cover(1000).block(128);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn block(mut self, block: impl Into<Block>) -> Launch<'e> {
        self.block = BlockChoice::Exact(block.into());
        self
    }

    /// The same launch with the block that keeps most threads of a multiprocessor at work, as the
    /// driver suggests ([`Kernel::suggested_block`](crate::Kernel::suggested_block)); asked once for
    /// a kernel and a size of dynamic shared memory, and remembered.
    ///
    /// A kernel that is made for one block (`#[block(..)]`, `.reqntid`) has that one.
    ///
    /// ```
    /// let launch = gridcall::cover(1_000_000).block_by_occupancy();
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn block_by_occupancy(mut self) -> Launch<'e> {
        self.block = BlockChoice::Occupancy;
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
    pub fn shared_mem_bytes(mut self, bytes: u32) -> Launch<'e> {
        self.shared_mem_bytes = u64::from(bytes);
        self
    }

    /// The same launch with dynamic shared memory for `len` elements of `T` a block, as
    /// `extern __shared__ T s[];` holds; see [`shared_mem_bytes`](Launch::shared_mem_bytes).
    ///
    /// ```
    /// let launch = gridcall::cover(1000).block(256).shared::<f32>(256);
    /// assert_eq!(launch, gridcall::cover(1000).block(256).shared_mem_bytes(1024));
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn shared<T>(mut self, len: usize) -> Launch<'e> {
        // What exceeds a u64 exceeds every device, and is refused as that.
        self.shared_mem_bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        self
    }

    /// The same launch as a cooperative grid: all of its blocks run at a time, and may wait for each
    /// other (`cooperative_groups::this_grid().sync()`).
    ///
    /// Refused if the device cannot run so many blocks of that size at a time. A kernel that is
    /// declared `#[cooperative]` is always launched so.
    ///
    /// ```
    /// let launch = gridcall::Launch::new(132, 256).cooperative();
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn cooperative(mut self) -> Launch<'e> {
        self.attributes.cooperative();
        self
    }

    /// The same launch in clusters of so many blocks (compute capability 9.0). [`cover`] makes its
    /// grid of whole clusters then, along the axes that it covers.
    ///
    /// More than 8 blocks, which not every device can run, are opted in to by the launch itself. A
    /// kernel that is declared `#[cluster(..)]` or compiled with `__cluster_dims__` is always
    /// launched so; and so is one that is compiled with `__block_size__((..), (..))`, of which CUDA's
    /// `<<<..>>>` and its driver count the clusters ([`.blocksareclusters`]). A grid of this crate is
    /// one of blocks for that kernel, too.
    ///
    /// [`.blocksareclusters`]: https://docs.nvidia.com/cuda/parallel-thread-execution/#miscellaneous-directives-blocksareclusters
    ///
    /// ```
    /// let launch = gridcall::Launch::new(8, 128).cluster(2);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn cluster(mut self, cluster: impl Into<Cluster>) -> Launch<'e> {
        self.attributes.cluster(cluster.into());
        self
    }

    /// The same launch, which may begin before the kernel in front of it in the stream has ended
    /// ([programmatic dependent launch], compute capability 9.0): as soon as all blocks of that one
    /// have said `griddepcontrol.launch_dependents`. What it wrote is there after this kernel's
    /// `griddepcontrol.wait` (`cudaGridDependencySynchronize`).
    ///
    /// Safe launches are refused if the kernel's code has no such wait. An event that is recorded
    /// between the two launches keeps them apart, as where several streams use one of the arrays.
    ///
    /// ```
    /// let launch = gridcall::cover(1000).programmatic_stream_serialization();
    /// # let _ = launch;
    /// ```
    ///
    /// [programmatic dependent launch]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#programmatic-dependent-launch-and-synchronization
    #[must_use]
    #[inline(always)]
    pub fn programmatic_stream_serialization(mut self) -> Launch<'e> {
        self.attributes.programmatic_stream_serialization();
        self
    }

    /// The same launch, which records the event at `trigger`, before the kernel has ended (compute
    /// capability 9.0). The event must be one without timing, of the stream's context.
    ///
    /// What waits for the event does not wait for what the kernel writes afterwards. Arrays do not
    /// depend on it: whoever uses one on another stream still waits for the whole kernel. A launch
    /// that covers nothing records nothing.
    ///
    /// It is made for graphs: a kernel that waits for it in a capture begins early when the graph runs,
    /// and has to wait by `griddepcontrol.wait` for what this one writes. Outside of graphs CUDA may
    /// let whoever waits begin early, and does not promise it: on an H200 with CUDA 13.0 it does so
    /// for a [`launch_completion_event`](Launch::launch_completion_event) alone.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// use gridcall::Trigger;
    /// let begun = stream.context().new_event(None)?;
    /// let launch = gridcall::cover(1000).programmatic_event(&begun, Trigger::BlockStart);
    /// # let _ = launch;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn programmatic_event(mut self, event: &'e CudaEvent, trigger: Trigger) -> Launch<'e> {
        self.attributes.programmatic_event(event, trigger);
        self
    }

    /// The same launch, which records the event when all blocks have begun, or later (CUDA 12.3).
    /// The event must be one without timing, of the stream's context; what is said of
    /// [`programmatic_event`](Launch::programmatic_event) holds for it too.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let begun = stream.context().new_event(None)?;
    /// let launch = gridcall::cover(1000).launch_completion_event(&begun);
    /// # let _ = launch;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn launch_completion_event(mut self, event: &'e CudaEvent) -> Launch<'e> {
        self.attributes.launch_completion_event(event);
        self
    }

    /// The same launch with another priority than its stream's: lower numbers go first, as for
    /// streams (`cuCtxGetStreamPriorityRange`).
    ///
    /// ```
    /// let launch = gridcall::cover(1000).priority(-1);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn priority(mut self, priority: i32) -> Launch<'e> {
        self.attributes.priority(priority);
        self
    }

    /// The same launch in a memory-synchronisation domain, so that fences of other kernels need not
    /// wait for its writes. Devices before compute capability 9.0 have one domain alone.
    ///
    /// ```
    /// use gridcall::{MemSyncDomain, cover};
    /// let launch = cover(1000).mem_sync_domain(MemSyncDomain::Remote);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn mem_sync_domain(mut self, domain: MemSyncDomain) -> Launch<'e> {
        self.attributes.mem_sync_domain(domain);
        self
    }

    /// The same launch, whose [`MemSyncDomain`] is one of the device's by this map, not by its stream's
    /// (CUDA 12.0). Launches of several streams that are in different domains do not wait for each other's
    /// writes.
    ///
    /// ```
    /// use gridcall::{MemSyncDomainMap, cover};
    /// let launch = cover(1000).mem_sync_domain_map(MemSyncDomainMap { default: 2, remote: 3 });
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn mem_sync_domain_map(mut self, map: MemSyncDomainMap) -> Launch<'e> {
        self.attributes.mem_sync_domain_map(map);
        self
    }

    /// The same launch, some of whose [clusters](Launch::cluster) are of this size instead, which is a
    /// multiple of theirs: as many as the device finds room for (compute capability 10.0, CUDA 12.8). A
    /// kernel sees in which kind of cluster a block is. [`cover`] makes its grid of whole clusters of this
    /// size.
    ///
    /// ```
    /// let launch = gridcall::Launch::new(16, 128).cluster(2).preferred_cluster(4);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn preferred_cluster(mut self, cluster: impl Into<Cluster>) -> Launch<'e> {
        self.attributes.preferred_cluster(cluster.into());
        self
    }

    /// The same launch, whose blocks are put on multiprocessors so (compute capability 9.0).
    ///
    /// ```
    /// use gridcall::{ClusterSchedulingPolicy, Launch};
    /// let launch = Launch::new(8, 128).cluster(4);
    /// let launch = launch.cluster_scheduling_policy(ClusterSchedulingPolicy::LoadBalancing);
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn cluster_scheduling_policy(mut self, policy: ClusterSchedulingPolicy) -> Launch<'e> {
        self.attributes.cluster_scheduling_policy(policy);
        self
    }

    /// The same launch, which would have so much shared memory and so much L1 cache (CUDA 12.5). A hint:
    /// the driver takes another division if the launch needs more shared memory, or others that run at
    /// the same time do. Cooperative launches, whose blocks must all fit, have none.
    ///
    /// ```
    /// use gridcall::{SharedMemCarveout, cover};
    /// let launch = cover(1000).shared_mem_carveout(SharedMemCarveout::Percent(50));
    /// # let _ = launch;
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn shared_mem_carveout(mut self, carveout: SharedMemCarveout) -> Launch<'e> {
        self.attributes.shared_mem_carveout(carveout);
        self
    }

    /// The same launch, which keeps memory of an array in the L2 cache for longer, or less long, than all
    /// else (compute capability 8.0). There is one window a launch; see [`AccessPolicyWindow`], and
    /// [`PersistingL2`](crate::PersistingL2) for what has to be set aside.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// use gridcall::{AccessPolicyWindow, AccessProperty, cover};
    /// let weights = stream.alloc_zeros::<f32>(1000)?;
    /// let window = AccessPolicyWindow::new(&weights, AccessProperty::Persisting)?;
    /// let launch = cover(1000).access_policy_window(window);
    /// # let _ = launch;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn access_policy_window(mut self, window: AccessPolicyWindow) -> Launch<'e> {
        self.attributes.access_policy_window(window);
        self
    }
}

impl Launch<'_> {
    #[inline(always)]
    pub(crate) fn dynamic_shared_mem_bytes(&self) -> u64 {
        self.shared_mem_bytes
    }

    /// Along how many axes the number of its blocks follows from an extent, if it does.
    #[inline(always)]
    pub(crate) fn covered(&self) -> Option<usize> {
        match self.shape {
            Shape::Cover { rank, .. } => Some(rank),
            Shape::Stride(_) => Some(1),
            Shape::Exact(_) => None,
        }
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
/// impl From<Image> for Launch<'_> {
///     fn from(image: Image) -> Self {
///         cover((image.width, image.height)).block((32, 8))
///     }
/// }
///
/// impl LaunchShape<'_> for Image {}
/// # let launch: Launch = Image { width: 640, height: 480 }.into();
/// # assert_eq!(launch, cover((640, 480)).block((32, 8)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a launch",
    label = "write `cover(n)`, or `(grid, block)`",
    note = "`cover` launches at least one thread for each element; `(grid, block)` exactly so many blocks of so many threads"
)]
pub trait LaunchShape<'e>: Into<Launch<'e>> {}

impl<'e> LaunchShape<'e> for Launch<'e> {}

impl LaunchShape<'_> for LaunchConfig {}

impl<G: Into<Grid>, B: Into<Block>> LaunchShape<'_> for (G, B) {}

impl From<LaunchConfig> for Launch<'_> {
    fn from(config: LaunchConfig) -> Self {
        Launch::new(config.grid_dim, config.block_dim).shared_mem_bytes(config.shared_mem_bytes)
    }
}

impl<G: Into<Grid>, B: Into<Block>> From<(G, B)> for Launch<'_> {
    fn from((grid, block): (G, B)) -> Self {
        Launch::new(grid, block)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
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

impl Grid {
    /// The number of blocks, which may exceed what any device allows.
    pub(crate) fn blocks(self) -> u64 {
        u64::from(self.x)
            .saturating_mul(u64::from(self.y))
            .saturating_mul(u64::from(self.z))
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
    pub(crate) fn resolve(launch: Launch<'_>, kernel: &Loaded) -> Result<Dims, GeometryError> {
        let rank = match launch.shape {
            Shape::Cover { rank, .. } => rank,
            Shape::Stride(_) | Shape::Exact(_) => 1,
        };
        if kernel.is_to_grant(launch.shared_mem_bytes) {
            kernel.grant_shared_mem(launch.shared_mem_bytes)?;
        }
        // What was granted is below the limit of a block.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it was compared with a u32"
        )]
        let shared_mem_bytes = launch.shared_mem_bytes as u32;
        let block = match launch.block {
            BlockChoice::Default => {
                let block = kernel.default_block(rank);
                if !kernel.default_block_fits {
                    check_block(block, kernel)?;
                }
                block
            }
            BlockChoice::Exact(block) => {
                check_block(block, kernel)?;
                block
            }
            BlockChoice::Occupancy => kernel.suggested_block(rank, shared_mem_bytes)?,
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
            Shape::Stride(n) => Grid::from(stride_blocks(n, block, shared_mem_bytes, kernel)?),
        };
        Ok(Dims {
            grid,
            block,
            shared_mem_bytes,
        })
    }

    /// Refuses a launch along other axes than those that the kernel is declared for. One along more
    /// runs a kernel that looks at fewer several times; an extent of fewer covers too little.
    #[inline(always)]
    pub(crate) fn check_rank(&self, launch: Launch<'_>, declared: u8) -> Result<(), GeometryError> {
        let along = |axis: Axis| match axis {
            Axis::X => 1,
            Axis::Y => self.grid.y.max(1) | self.block.y,
            Axis::Z => self.grid.z.max(1) | self.block.z,
        };
        let exceeds = declared < 3 && along(Axis::Z) != 1 || declared < 2 && along(Axis::Y) != 1;
        let covered = match launch.shape {
            Shape::Cover { rank, .. } => rank,
            Shape::Stride(_) => 1,
            Shape::Exact(_) => declared as usize,
        };
        if exceeds || covered != declared as usize {
            return Err(other_rank(declared, covered, self.numbers()));
        }
        Ok(())
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

/// As many blocks as run at a time, or as the elements need, if that is less.
#[inline(never)]
fn stride_blocks(
    n: i64,
    block: Block,
    shared_mem_bytes: u32,
    kernel: &Loaded,
) -> Result<u32, GeometryError> {
    let Ok(elements) = u64::try_from(n) else {
        return Err(GeometryError::NegativeExtent {
            axis: Axis::X,
            extent: n,
        });
    };
    let needed = elements.div_ceil(u64::from(block.x));
    let resident = kernel.resident_blocks(block, shared_mem_bytes, None)?;
    // A kernel of which none fits is for the driver to refuse.
    Ok(u32::try_from(needed).map_or(resident.max(1), |needed| needed.min(resident.max(1))))
}

#[cold]
#[inline(never)]
fn other_rank(declared: u8, covered: usize, numbers: [u32; 7]) -> GeometryError {
    let Dims { grid, block, .. } = Dims::from_numbers(numbers);
    GeometryError::OtherRank {
        declared,
        covered,
        grid,
        block,
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
