//! What can go wrong, in the user's terms. Every message is made here.

use std::{borrow::Cow, fmt};

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use crate::{
    attributes::Cluster,
    describe::LaunchDescription,
    driver::DriverCode,
    launch::{Block, Grid},
    load::Module,
    symbol::SymbolError,
};

/// Why a kernel could not be loaded, or a device not be opened.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct LoadError(Box<LoadErrorKind>);

/// What there is beside a driver.
#[cfg(feature = "emulator")]
const OTHERWISE: &str = "let GRIDCALL_DRIVER be other than `cuda`, for the emulator";
#[cfg(not(feature = "emulator"))]
const OTHERWISE: &str = "turn on gridcall's feature `emulator`, which needs none";

/// What a [`LoadError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// There is no driver library.
    #[error(
        "no CUDA driver found: `{library}` cannot be opened ({reason}); install the NVIDIA driver, or {}",
        OTHERWISE
    )]
    NoDriver {
        /// The library's file name.
        library: &'static str,
        /// The loader's words.
        reason: String,
    },
    /// The driver library lacks a function that every supported driver has.
    #[error("the CUDA driver is too old: it has no `{function}`; update the NVIDIA driver")]
    OldDriver {
        /// The function that is missing.
        function: &'static str,
    },
    /// The driver is there and cannot be used.
    #[error("the CUDA driver cannot be used: {code}{cure}")]
    DriverUnusable {
        /// The driver's answer to `cuInit`.
        code: DriverCode,
        /// What to do, if that is known; begins with a semicolon.
        cure: &'static str,
    },
    /// `GRIDCALL_DRIVER` is neither `cuda` nor `emulator`.
    #[error("GRIDCALL_DRIVER is `{choice}`: set it to `cuda`, to `emulator`, or not at all")]
    UnknownChoice {
        /// What it is.
        choice: String,
    },
    /// The emulator was asked for, and is not built in.
    #[error(
        "GRIDCALL_DRIVER asks for the emulator, which is not built in: turn on gridcall's feature `emulator`"
    )]
    NoEmulator,
    /// The emulator cannot take the driver's place.
    #[cfg(feature = "emulator")]
    #[error("{0}")]
    Emulator(gridcall_emulator::InstallError),
    /// There is no device of that number.
    #[error("there is no CUDA device {ordinal}: the driver counts {count}")]
    NoDevice {
        /// The device that was asked for, from 0.
        ordinal: usize,
        /// How many there are.
        count: u32,
    },
    /// An error of the past, stored in the context by a call that could not return it.
    #[error(
        "an earlier error is stored in the context: {0}; it is not of this call, and everything enqueued since is in doubt"
    )]
    Earlier(DriverError),
    /// The context is broken for good.
    #[error("{}", broken(*.0))]
    Broken(DriverCode),
    /// Loading would break the capture that the stream is in.
    #[error(
        "kernel `{kernel}` is not loaded yet, and its stream is being captured into a graph; load it before the capture, with `{kernel}::load(&ctx)`"
    )]
    Capturing {
        /// The kernel's name in Rust.
        kernel: &'static str,
    },
    /// The crate was compiled without the PTX.
    #[error(
        "kernel `{kernel}`: the crate was compiled with signatures only, as `{path}` was missing; compile the PTX, and then the crate without GRIDCALL_SIGNATURES_ONLY"
    )]
    SignaturesOnly {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
    },
    /// The PTX is of a newer version than the driver reads.
    #[error(
        "kernel `{kernel}`: `{path}` is PTX ISA {}.{}{}, and this driver supports up to CUDA {}.{}{}; update the driver, or compile with an older toolkit",
        ptx.0, ptx.1, toolkit(*ptx), driver / 1000, driver % 1000 / 10, isa(*driver)
    )]
    PtxTooNew {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The file's `.version`.
        ptx: (u32, u32),
        /// What `cuDriverGetVersion` answers: 1000 × major + 10 × minor.
        driver: u32,
    },
    /// The PTX is for another architecture.
    #[error(
        "kernel `{kernel}`: `{path}` is compiled for `{target}`, which a device of compute capability {}.{} cannot run; compile for `compute_{}{}` or lower, without a suffix",
        capability.0, capability.1, capability.0, capability.1
    )]
    WrongTarget {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The file's `.target`.
        target: &'static str,
        /// The device's compute capability.
        capability: (u32, u32),
    },
    /// The driver's compiler refused the PTX.
    #[error("kernel `{kernel}`: the driver cannot compile `{path}`: {code}{log}{hint}")]
    Jit {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The driver's answer.
        code: DriverCode,
        /// The compiler's own log, each line on a line of its own, or empty.
        log: String,
        /// What to do, if the log shows it, or empty.
        hint: &'static str,
    },
    /// The module loaded, and has no such entry.
    #[error("kernel `{kernel}`: the driver finds no entry `{entry}` in {path}{instead}")]
    NoEntry {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The entry's name.
        entry: String,
        /// The file or the module.
        path: String,
        /// What it has, if the driver tells, or empty.
        instead: String,
    },
    /// The loaded kernel takes other parameters than the declaration says.
    #[error(
        "kernel `{kernel}`: parameter {index}, `{name}`, is {declared} bytes at offset {offset} in `{path}`, but the loaded kernel takes {found}"
    )]
    Parameters {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The file or the module.
        path: String,
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Its size by the declaration, in bytes.
        declared: usize,
        /// Its offset by the declaration, in bytes.
        offset: usize,
        /// What the driver says of it.
        found: String,
    },
    /// The module is not that of the declaration.
    #[error("kernel `{kernel}`: {message}")]
    Mismatch {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// What differs, and where.
        message: String,
    },
    /// A symbol cannot be taken from its module.
    #[error("symbol `{name}`: {message}")]
    Symbol {
        /// The static's name in Rust.
        name: &'static str,
        /// Why not.
        message: String,
    },
    /// None of the kernel's images is for this device.
    #[error("kernel `{kernel}`: no image is for a device of compute capability {}.{}; there are {variants}", capability.0, capability.1)]
    NoVariant {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The device's compute capability.
        capability: (u32, u32),
        /// The images and their targets.
        variants: String,
    },
    /// A module's file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A module is text, and not the PTX that it should be.
    #[error("not the PTX that it should be: {place}: {message}")]
    Ptx {
        /// The module, as it was named, with line and column where one is wrong.
        place: String,
        /// What was expected there, and what to do if that is known.
        message: String,
    },
    /// The source could not be compiled, or a declaration is not that of its kernel.
    #[cfg(feature = "nvrtc")]
    #[error("{0}")]
    Nvrtc(crate::nvrtc::CompileError),
    /// The driver refused a module.
    #[error("the driver cannot load {module}: {code}{log}{hint}")]
    Module {
        /// The module, as it was named.
        module: String,
        /// The driver's answer.
        code: DriverCode,
        /// The compiler's own log, each line on a line of its own, or empty.
        log: String,
        /// What to do, if the log shows it, or empty.
        hint: &'static str,
    },
    /// Another call of the driver failed.
    #[error("kernel `{kernel}`: {call} failed: {code}")]
    Driver {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
    },
    /// The driver did not say how many blocks of the kernel run at a time.
    #[error("kernel `{kernel}`: {reason}")]
    Occupancy {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// Why not.
        reason: GeometryError,
    },
    /// A stream of another library is not of the device it was taken for.
    #[error(
        "the stream is not of the primary context of device {ordinal}; pass one of that device"
    )]
    OtherStream {
        /// The device.
        ordinal: usize,
    },
    /// The context could not be created or made current.
    #[error("cannot use the context of device {ordinal}: {source}")]
    Context {
        /// The device.
        ordinal: usize,
        /// cudarc's error.
        source: DriverError,
    },
}

impl LoadError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &LoadErrorKind {
        &self.0
    }
}

#[cfg(feature = "nvrtc")]
impl From<crate::nvrtc::CompileError> for LoadError {
    #[cold]
    fn from(error: crate::nvrtc::CompileError) -> LoadError {
        LoadErrorKind::Nvrtc(error).into()
    }
}

impl From<LoadErrorKind> for LoadError {
    #[cold]
    fn from(kind: LoadErrorKind) -> LoadError {
        LoadError(Box::new(kind))
    }
}

/// Why a kernel was not launched, or, for [`LaunchErrorKind::Finish`] and
/// [`LaunchErrorKind::Fault`], what went wrong after it was.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kernel: &'static str,
    kind: LaunchErrorKind,
}

/// What a [`LaunchError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchErrorKind {
    /// The kernel could not be loaded.
    #[error("{0}")]
    Load(LoadError),
    /// An error of the past, stored in the context by a call that could not return it.
    #[error(
        "an earlier error is stored in the context: {0}; it is not of this launch, which was not made, and everything enqueued since is in doubt"
    )]
    Earlier(DriverError),
    /// The context is broken for good.
    #[error("{}", broken(*.0))]
    Broken(DriverCode),
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph; events recorded in a capture would poison every later use of the arrays, so safe launches refuse it"
    )]
    Capturing,
    /// The handle was loaded in another context than the stream's.
    #[error(
        "the kernel was loaded in a context of device {kernel}, the stream belongs to another context, of device {stream}; load it with that stream's context"
    )]
    OtherContext {
        /// The device of the context in which the kernel was loaded.
        kernel: usize,
        /// The stream's device.
        stream: usize,
    },
    /// An argument cannot be used.
    #[error("argument `{name}` (parameter {index}, {ty}): {error}")]
    Argument {
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Its declared type.
        ty: &'static str,
        /// Why not.
        error: ArgumentError,
    },
    /// A symbol that the kernel uses could not be ordered with its other uses.
    #[error("{0}")]
    Symbol(SymbolError),
    /// A `#[requires]` does not hold.
    #[error("the launch needs `{requirement}`, but {values}")]
    Requirement {
        /// The expression, as declared.
        requirement: &'static str,
        /// What the names in it stand for.
        values: String,
    },
    /// The grid, the block or the shared memory is not possible.
    #[error("{0}")]
    Geometry(GeometryError),
    /// A launch attribute is not possible.
    #[error("{0}")]
    Attribute(AttributeError),
    /// The driver refused the launch.
    #[error("{call} failed: {code}{explanation}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
        /// What it was asked for and what its limits are, or empty.
        explanation: String,
    },
    /// The kernel was launched, but its use of an argument could not be recorded; the stream has
    /// been synchronised, so that nothing is freed too early.
    #[error(
        "the kernel was launched, but its use of argument `{name}` (parameter {index}) could not be recorded: {error}"
    )]
    Finish {
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Why not.
        error: ViewError,
    },
    /// With `GRIDCALL_SYNC=1`: the kernel ran and failed.
    #[error("declared at {file}:{line}, failed while it ran: {code}\n  {launch}")]
    Fault {
        /// The source file of the declaration.
        file: &'static str,
        /// The line of the declaration.
        line: u32,
        /// What the synchronisation answered.
        code: DriverCode,
        /// What was launched.
        launch: Box<LaunchDescription>,
    },
}

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
    #[error("block.{axis} is 0")]
    ZeroBlock {
        /// The axis.
        axis: Axis,
    },
    /// The extent given to `cover` is negative.
    #[error("cannot cover {extent} elements along {axis}")]
    NegativeExtent {
        /// The axis.
        axis: Axis,
        /// The extent.
        extent: i64,
    },
    /// Too many blocks along one axis.
    #[error("grid.{axis} is {blocks}, the device allows {limit}")]
    GridTooLarge {
        /// The axis.
        axis: Axis,
        /// The number of blocks.
        blocks: u64,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads along one axis.
    #[error("block.{axis} is {threads}, the device allows {limit}")]
    BlockTooLarge {
        /// The axis.
        axis: Axis,
        /// The number of threads.
        threads: u32,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads in a block for any kernel.
    #[error("the block has {threads} threads, the device allows {limit}")]
    TooManyThreads {
        /// The number of threads.
        threads: u64,
        /// The device's limit.
        limit: u32,
    },
    /// Too many threads in a block for this kernel.
    #[error("the block has {threads} threads, the kernel can run at most {limit} on this device ({registers} registers a thread{})", bound(*launch_bound))]
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
    #[error("the block is {asked}, the kernel {} {fixed}", if *by_ptx { "is compiled for (.reqntid)" } else { "declares #[block] as" })]
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
        "the launch asks for {asked} bytes of dynamic shared memory; this device allows {limit} a block, of which the kernel takes {fixed} itself"
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

/// Why a launch attribute is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// The device is not capable of it.
    #[error(
        "the launch asks for {attribute}, which needs compute capability {}.{}; this device has {}.{}",
        needed.0, needed.1, capability.0, capability.1
    )]
    Capability {
        /// What was asked for.
        attribute: &'static str,
        /// The compute capability that it needs.
        needed: (u32, u32),
        /// The device's.
        capability: (u32, u32),
    },
    /// The driver has no function for launches with attributes.
    #[error("the CUDA driver is too old for launch attributes: it has no `{function}`; update it")]
    OldDriver {
        /// The function that is missing.
        function: &'static str,
    },
    /// What was asked for is between launches of a stream, and the launch is a node of a graph.
    #[error(
        "the launch asks for {attribute}, which a node of a graph cannot have: nodes run when those before them have ended; leave it out, or launch the kernel on a stream"
    )]
    OfNode {
        /// What was asked for.
        attribute: &'static str,
    },
    /// A node of a graph was to be updated with other attributes than it has.
    #[error(
        "the node has {node}, the update asks for {asked}; a node keeps its attributes: ask for the same, or build the graph anew"
    )]
    OfUpdate {
        /// The node's attributes.
        node: String,
        /// Those of the update.
        asked: String,
    },
    /// A safe launch may begin early, and the kernel would not wait.
    #[error(
        "the launch asks for programmatic stream serialization, but the kernel's code has no `griddepcontrol.wait` that is known, so it could run before what it reads is written; call cudaGridDependencySynchronize() in the kernel, or declare it `unsafe fn`"
    )]
    NeverWaits,
    /// An event belongs to another context.
    #[error(
        "the {event} event belongs to another context than the stream, of device {device}; make it with `stream.context().new_event(None)`"
    )]
    OtherContext {
        /// Which of the two kinds of event.
        event: &'static str,
        /// The event's device.
        device: usize,
    },
    /// The priority is none of the device's.
    #[error("priority {asked} is not between {least}, the least, and {greatest}, the greatest")]
    Priority {
        /// The priority asked for.
        asked: i32,
        /// The least, which is the highest number.
        least: i32,
        /// The greatest.
        greatest: i32,
    },
    /// A cluster has no blocks.
    #[error("cluster.{axis} is 0")]
    ZeroCluster {
        /// The axis.
        axis: Axis,
    },
    /// The kernel is made for other clusters.
    #[error("the launch asks for clusters of {asked}, the kernel {} {fixed}", if *by_ptx { "is compiled for (.reqnctapercluster)" } else { "declares #[cluster] as" })]
    OtherCluster {
        /// The cluster asked for.
        asked: Cluster,
        /// The kernel's.
        fixed: Cluster,
        /// Whether the PTX fixes it, not the declaration.
        by_ptx: bool,
    },
    /// The kernel must be launched in clusters, and nobody says of which size.
    #[error(
        "the kernel is compiled to be launched in clusters (.explicitcluster) of a size that it does not say; add `.cluster(..)` to the launch, or declare #[cluster(..)]"
    )]
    NoCluster,
    /// More blocks in a cluster than any device runs.
    #[error("a cluster of {cluster} has {} blocks, a device runs at most 16", cluster.blocks())]
    ClusterTooLarge {
        /// The cluster asked for.
        cluster: Cluster,
    },
    /// More blocks in a cluster than the kernel was compiled for.
    #[error("a cluster of {cluster} has {} blocks, the kernel is compiled for at most {limit} (.maxclusterrank)", cluster.blocks())]
    ClusterTooLargeForKernel {
        /// The cluster asked for.
        cluster: Cluster,
        /// The kernel's limit.
        limit: u32,
    },
    /// The driver refused to allow clusters of more than 8 blocks.
    #[error("cannot opt in to clusters of {} blocks, as 8 are portable: {code}", cluster.blocks())]
    LargeCluster {
        /// The cluster asked for.
        cluster: Cluster,
        /// The driver's answer.
        code: DriverCode,
    },
    /// The grid is not of whole clusters.
    #[error(
        "a grid of {grid} is not of whole clusters of {cluster}; make each axis a multiple, or use `cover`, which does"
    )]
    NotOfClusters {
        /// The grid.
        grid: Grid,
        /// The cluster.
        cluster: Cluster,
    },
    /// A cluster has several blocks along an axis that the launch does not cover.
    #[error(
        "a cluster of {cluster} has several blocks along {axis}, which the launch does not cover: they would run the same threads again; cover an extent along {axis} too, or give the grid by `Launch::new`"
    )]
    ClusterNotCovered {
        /// The cluster.
        cluster: Cluster,
        /// The first such axis.
        axis: Axis,
    },
    /// The device cannot run one cluster.
    #[error(
        "no cluster of {cluster} blocks of {} threads and {shared_mem_bytes} bytes of dynamic shared memory fits this device; make the cluster, the block or shared memory smaller",
        block.threads()
    )]
    ClusterDoesNotFit {
        /// The cluster.
        cluster: Cluster,
        /// The block.
        block: Block,
        /// Dynamic shared memory of a block in bytes.
        shared_mem_bytes: u32,
    },
    /// The device does not run cooperative grids.
    #[error("the launch is cooperative, which this device does not support")]
    NoCooperative,
    /// A cooperative grid of more blocks than run at a time.
    #[error("{}", cooperative(*grid, *block, *shared_mem_bytes, *cluster, *resident, *multiprocessors))]
    CooperativeTooLarge {
        /// The grid.
        grid: Grid,
        /// The block.
        block: Block,
        /// Dynamic shared memory of a block in bytes.
        shared_mem_bytes: u32,
        /// The cluster, if there is one of several blocks.
        cluster: Option<Cluster>,
        /// The blocks that the device runs at a time.
        resident: u32,
        /// The device's multiprocessors.
        multiprocessors: u32,
    },
}

impl From<AttributeError> for LaunchErrorKind {
    fn from(error: AttributeError) -> LaunchErrorKind {
        LaunchErrorKind::Attribute(error)
    }
}

impl From<GeometryError> for LaunchErrorKind {
    fn from(error: GeometryError) -> LaunchErrorKind {
        LaunchErrorKind::Geometry(error)
    }
}

/// Why a buffer could not be made, copied, split, lent or freed, or an end not be awaited.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct BufferError(Box<BufferErrorKind>);

/// What a [`BufferError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferErrorKind {
    /// There is no memory for it.
    #[error("cannot allocate {bytes} bytes on device {device}: {source}")]
    Allocate {
        /// The bytes asked for.
        bytes: usize,
        /// The device.
        device: usize,
        /// The driver's answer.
        source: DriverError,
    },
    /// The elements asked for have more bytes than there are addresses.
    #[error("{len} elements of {size} bytes are more than can be addressed")]
    TooLarge {
        /// The number of elements.
        len: usize,
        /// The size of one in bytes.
        size: usize,
    },
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, which would use the buffer at times that nobody can wait for; end the capture first, or use another stream"
    )]
    Capturing,
    /// A stream that used the buffer is being captured, so that it cannot be waited for.
    #[error(
        "another stream that used the buffer is being captured into a graph, and cannot be waited for until the capture ends"
    )]
    UserCapturing,
    /// The stream belongs to another context than the buffer.
    #[error(
        "the buffer is in a context of device {buffer}, the stream belongs to another context, of device {stream}; copy it there with `clone_to`"
    )]
    OtherContext {
        /// The buffer's device.
        buffer: i32,
        /// The stream's device.
        stream: i32,
    },
    /// A range reaches beyond the end.
    #[error("the range {start}..{end} does not lie within {len} elements")]
    Range {
        /// Where the range begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The number of elements.
        len: usize,
    },
    /// Two lengths that must be equal are not.
    #[error("cannot copy {from} elements to {to}; take slices of one length")]
    Length {
        /// The number of elements to copy from.
        from: usize,
        /// The number of elements to copy to.
        to: usize,
    },
    /// The bytes are no whole number of elements of the type asked for, or not aligned for it.
    #[error(
        "{bytes} bytes at an address aligned to {aligned} cannot be seen as `{ty}`, of {size} bytes aligned to {align}"
    )]
    Cast {
        /// The bytes there are.
        bytes: usize,
        /// The largest power of two that divides the address.
        aligned: u64,
        /// The type.
        ty: &'static str,
        /// Its size in bytes.
        size: usize,
        /// Its alignment in bytes.
        align: usize,
    },
    /// The device wrote bytes that are no value of the type.
    #[error("element {index} is no valid `{ty}`; read it with `to_bytes` to see what it is")]
    Invalid {
        /// The first such element.
        index: usize,
        /// The type.
        ty: &'static str,
    },
    /// One device cannot reach another's memory.
    #[error(
        "device {to} cannot reach the memory of device {from}: {source}; copy it there with `clone_to`"
    )]
    NoPeer {
        /// The device whose memory it is.
        from: usize,
        /// The device that asked for it.
        to: usize,
        /// The driver's answer.
        source: DriverCode,
    },
    /// The buffer is empty or its memory not of a pool, so that no other device can be let in.
    #[error(
        "only memory from a pool can be shared with another device, and device {device} has none"
    )]
    NoPool {
        /// The buffer's device.
        device: usize,
    },
    /// The context is broken for good.
    #[error("{}", broken(DriverCode::from(*.0)))]
    Broken(DriverError),
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
    /// The time between two events could not be asked for.
    #[error("cuEventElapsedTime failed: {0}")]
    Elapsed(DriverCode),
    /// The future was polled again after it was ready.
    #[error("what was awaited has been given away already")]
    Taken,
    /// No thread could be started that looks for what is done.
    #[error("cannot start the thread that awaits the device: {0}")]
    Thread(std::io::Error),
}

/// Why something could not be measured; `E` is the error of what was to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError<E> {
    /// What was to be measured failed.
    #[error("{0}")]
    Work(E),
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, in which nothing runs that could be measured; measure the launch of the graph"
    )]
    Capturing,
    /// The device or the driver failed.
    #[error("cannot measure: {0}")]
    Device(BufferError),
    /// No rounds were asked for.
    #[error("cannot measure 0 rounds")]
    NoRounds,
}

impl BufferError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &BufferErrorKind {
        &self.0
    }

    pub(crate) fn is_capturing(&self) -> bool {
        matches!(
            *self.0,
            BufferErrorKind::Capturing | BufferErrorKind::UserCapturing
        )
    }
}

impl From<BufferErrorKind> for BufferError {
    #[cold]
    fn from(kind: BufferErrorKind) -> BufferError {
        BufferError(Box::new(kind))
    }
}

impl From<BufferError> for ViewError {
    #[cold]
    fn from(error: BufferError) -> ViewError {
        match *error.0 {
            BufferErrorKind::Driver { call, source } => ViewError::driver(call, source),
            kind => ViewError::other(kind.to_string()),
        }
    }
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

impl LaunchError {
    #[cold]
    pub(crate) fn new(kernel: &'static str, kind: LaunchErrorKind) -> LaunchError {
        LaunchError(Box::new(Inner { kernel, kind }))
    }

    /// The error of a launch whose kernel could not be loaded.
    #[cold]
    pub(crate) fn of_load(kernel: &'static str, error: LoadError) -> LaunchError {
        let kind = match *error.0 {
            LoadErrorKind::Earlier(earlier) => LaunchErrorKind::Earlier(earlier),
            LoadErrorKind::Broken(code) => LaunchErrorKind::Broken(code),
            _ => LaunchErrorKind::Load(error),
        };
        LaunchError::new(kernel, kind)
    }

    /// The kernel's name in Rust.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        self.0.kernel
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &LaunchErrorKind {
        &self.0.kind
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // What cannot be loaded is named there.
            LaunchErrorKind::Load(error) => error.fmt(f),
            kind => write!(f, "kernel `{}`: {kind}", self.kernel),
        }
    }
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

fn broken(code: DriverCode) -> String {
    format!(
        "the context is broken: an earlier kernel failed in it with {code}; nothing runs in it any more, so the error is not of this call (GRIDCALL_SYNC=1 finds the kernel)"
    )
}

fn cooperative(
    grid: Grid,
    block: Block,
    shared_mem_bytes: u32,
    cluster: Option<Cluster>,
    resident: u32,
    multiprocessors: u32,
) -> String {
    let blocks = grid.blocks();
    let threads = block.threads();
    let clusters = match cluster {
        Some(cluster) => format!(", in clusters of {cluster}"),
        None => format!(
            ": {} on each of {multiprocessors} multiprocessors",
            resident / multiprocessors.max(1)
        ),
    };
    format!(
        "a cooperative grid of {blocks} blocks cannot run at a time; with {threads} threads and {shared_mem_bytes} bytes of dynamic shared memory a block this device runs {resident}{clusters}; launch at most so many, and let each do more"
    )
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

/// The PTX versions that CUDA toolkits write and drivers of that release read, by NVIDIA's
/// [release history](https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes).
const RELEASES: [(u32, (u32, u32)); 22] = [
    (11_000, (7, 0)),
    (11_010, (7, 1)),
    (11_020, (7, 2)),
    (11_030, (7, 3)),
    (11_040, (7, 4)),
    (11_050, (7, 5)),
    (11_060, (7, 6)),
    (11_070, (7, 7)),
    (11_080, (7, 8)),
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_060, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
    (13_000, (9, 0)),
    (13_010, (9, 1)),
    (13_020, (9, 2)),
];

/// The toolkit that writes this PTX, for a message.
fn toolkit(ptx: (u32, u32)) -> String {
    RELEASES
        .iter()
        .find(|(_, isa)| *isa == ptx)
        .map_or_else(String::new, |(cuda, _)| {
            format!(" (CUDA {}.{})", cuda / 1000, cuda % 1000 / 10)
        })
}

/// The PTX that a driver of this version reads, for a message.
fn isa(driver: u32) -> String {
    RELEASES
        .iter()
        .find(|(cuda, _)| *cuda == driver)
        .map_or_else(String::new, |(_, (major, minor))| {
            format!(" (PTX ISA {major}.{minor})")
        })
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
