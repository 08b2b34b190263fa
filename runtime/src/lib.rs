//! Call a CUDA kernel like a Rust function.
//!
//! The kernel stays CUDA C++ or PTX. A Rust declaration of its signature, marked
//! [`#[kernel]`](kernel), is compared with the compiled kernel while your crate compiles, and
//! becomes a typed function that takes any device array as it is and launches at the cost of a bare
//! `cuLaunchKernel`.
//!
//! ```no_run
//! use gridcall::{cover, kernel};
//!
//! #[kernel(ptx = "../kernels/vector.ptx")]
//! unsafe extern "C" {
//!     /// y ← a·x + y
//!     #[requires(x.len() >= n, y.len() >= n)]
//!     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ctx = gridcall::device(0)?;
//! let stream = ctx.default_stream(); // plain cudarc from here on
//! let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
//! let mut y = stream.clone_htod(&[10.0_f32, 20.0, 30.0])?;
//! saxpy(&stream, cover(3), 3, 2.0, &x, &mut y)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a declaration becomes
//!
//! Two items of the declared name, with its visibility and documentation (without `ptx = ..` only
//! the second, since the module is known only when the program runs; see [`Module`]):
//!
//! - the function `saxpy(stream, launch, n, a, x, y) -> Result<(), LaunchError>`, which finds the
//!   kernel loaded for the stream's context, or loads it at the first call;
//! - the struct of named arguments, for kernels with several scalars of one type:
//!   `saxpy { n, a: 2.0, x: &x, y: &mut y }.launch(&stream, cover(n))?`. Its `saxpy::load(&ctx)?`
//!   loads the kernel ahead of time and gives a [`Kernel`] handle.
//!
//! `safe fn` can be called without `unsafe`; `unsafe fn`, or no qualifier, leaves something for
//! each caller to vouch for.
//!
//! | in the declaration | in CUDA C++ | at the call |
//! |---|---|---|
//! | `bool`, `u8` to `u64`, `i8` to `i64`, `usize`, `isize`, `f32`, `f64` | the same scalar (`size_t` is `usize`) | the value |
//! | `f16`, `bf16` (feature `half`), `Complex<_>` (`num-complex`), `F8E4M3`, `F8E5M2` (`float8`) | `__half`, `__nv_bfloat16`, `cuComplex`, `__nv_fp8_*` | the value |
//! | [`Float4`], [`Int2`], ... | `float4`, `int2`, ... | the value |
//! | `&[T]`, `&mut [T]` | `const T*`, `T*` | `&` or `&mut` to any [`AsDeviceView<T>`] or [`AsDeviceViewMut<T>`], contiguous |
//! | `Option<&[T]>` | a pointer that may be null | `None` or `Some(&x)`; of an `Option` of your own, `x.as_ref().map(\|x\| x as _)` |
//! | [`Strided<T, N>`](Strided), `StridedMut<T, N>` | `gridcall::strided<const T, N>`, `<T, N>` of our header [`gridcall.cuh`](CUDA_HEADER) | the same, of rank `N`, however its elements lie |
//! | [`TensorMap<T>`](TensorMap), `TensorMapMut<T>` | `const __grid_constant__ CUtensorMap` | `&` or `&mut` to one that was made of an array |
//! | [`Texture<T>`](Texture) | `cudaTextureObject_t` | `&` to one that was made of an array |
//! | [`Surface<T>`](Surface), `SurfaceMut<T>` | `cudaSurfaceObject_t` | `&` or `&mut` to one of a [`CudaArray`] |
//! | [`DeviceFn<fn(A) -> R>`](DeviceFn) | `R (*)(A)`, a pointer to a `__device__` function | `&` to one that was read from a static of the kernel's module |
//! | [`GraphCondition`] | `cudaGraphConditionalHandle` | one of the graph that the node is added to |
//! | `*const T`, `*mut T`, only in `unsafe fn` | `const T*`, `T*` | a [`DevicePointer`] or [`DevicePointerMut`] |
//! | a struct with [`#[derive(KernelArg)]`](derive@KernelArg) | the same struct | the value; padding arrives as zeros |
//!
//! A `static` in the block is a `__constant__` or `__device__` variable of the same module: `static mut
//! TAPS: [f32; 16];` becomes a [`Static`], with `TAPS.write(&stream, &taps)?` and
//! `TAPS.read(&stream)?`, in order with the launches of all kernels that use it. The author of a
//! `safe fn` vouches that it is right whatever values its variables hold. One that holds addresses of
//! device functions is a `static OP: DeviceFn<fn(f32) -> f32>;`, which gives them by `OP.get(&stream)?`.
//!
//! # What is checked, and when
//!
//! - **While the crate compiles**, against the PTX: that the entry exists; the number, size,
//!   alignment and class (integer, float, struct) of the parameters; `#[block]` against the launch
//!   bounds; the size of the parameter block. Struct layouts are compared by constants.
//! - **By rustc**: element types and mutability of arrays, arity and scalar types at each call.
//! - **At the call, before anything is enqueued**: that arrays are contiguous, aligned,
//!   in the stream's context, and do not overlap where one is written; every `#[requires]`; the
//!   limits of grid, block and shared memory. A call that is refused has enqueued nothing.
//! - **When a kernel is loaded**: the driver's own view of the parameters, where it tells
//!   (`cuFuncGetParamInfo`, CUDA 12.4); errors carry the log of its compiler.
//!
//! A PTX header does not hold pointee types, signedness, `const` or the order of a struct's fields.
//! Other witnesses do, and are heard where there are: the C++ name of an entry without `extern
//! "C"`; the code of the kernel, for arrays that are certainly written or accessed in another
//! width; the CUDA source, with `#[kernel(.., cuda = "path")]`; and the CUDA compiler itself, by
//! [`verify!`] in a test. What none of them was asked for is the author's word.
//!
//! # What `safe` means
//!
//! The author of a `safe fn` declaration vouches, by the `unsafe` before the block, that whenever
//! its `#[requires]` hold, the kernel stays within its arrays, writes through no `&[T]`, writes
//! only valid values of `T`, returns, and is right for every launch shape that the contract admits
//! (a contract may also speak of `grid`, `block` and `shared_mem_bytes`), in clusters of any size
//! unless `#[cluster(..)]` or the PTX name one. Given that, no safe code
//! can make a launch read or write memory that is not its own. The launch itself sees to this:
//!
//! - Arrays stay borrowed during the call, and their later free or reuse waits for the kernel:
//!   cudarc's arrays carry events, which a launch waits for and records by cudarc's rules. Where
//!   cudarc would record one use over another, by other streams and threads, the launch first makes
//!   its stream wait for that one: any number of launches that read an array, or write its parts, on
//!   any streams and threads, and a drop, are safe.
//! - An error that cudarc had stored in the context makes its waits do nothing. It is therefore
//!   fetched before the launch and again after the waits, and ends the launch.
//! - A stream that is being captured into a graph is refused by safe kernels.
//! - A kernel whose code has no `griddepcontrol.wait` is not launched while the one in front of it
//!   still runs. The author of one that has it vouches that the wait stands before whatever other
//!   kernels write or read.
//! - If recording a use fails after the launch, the stream is synchronised before the error is
//!   returned.
//!
//! [`Buffer`] is memory for which all of this holds without exception, and at no cost while one
//! stream uses it. What a launch cannot mend for cudarc's own arrays, since it happens in cudarc
//! outside any launch:
//!
//! - Dropping the last stream that was created in a context turns event tracking off, also while
//!   a kernel on that stream still runs. Synchronise a stream before you drop it if arrays that it
//!   used outlive it.
//! - Uses by streams that cudarc does not own (`wrap_borrowed_stream`, `per_thread_stream`) are
//!   not tracked while no stream was created with `new_stream` in the context. Synchronise before
//!   an array that such a stream used is dropped or used on another.
//! - cudarc's own copies, and whatever else goes through its `DevicePtr`, record a read over those
//!   of other streams, launches' too. An array that was read on one stream and then copied from on
//!   another must not be dropped or written before the first is synchronised. A [`Buffer`] has no
//!   such exceptions.
//! - cudarc keeps one error for a context, whichever thread stored it, and a wait that finds one is
//!   not made. A launch sees that, unless another thread fetches the error in that moment. After
//!   any error of a context that several threads use, synchronise it.
//! - An array of a default stream that is dropped while another context is current is freed on that
//!   context's default stream. With several contexts of one device, synchronise before such a drop.
//!
//! # Arrays
//!
//! Arguments for `&[T]` and `&mut [T]` are cudarc's `CudaSlice` and its views, a [`Buffer`] and its
//! slices, [`BorrowedView`]s of memory that comes as an address, tensors of other libraries (see the
//! features), and types of your own: by [`#[derive(AsDeviceView)]`](derive@AsDeviceView) around one of
//! these, or by the trait [`AsDeviceView`]. [`Shaped`] gives a shape to one that has none, and [`Cast`]
//! shows the same bytes as elements of another type, as floats for a kernel of `float4`. A [`CudaArray`]
//! has no address: kernels reach it as a [`Texture`] or a [`Surface`].
//!
//! A [`Buffer`] copies to and from the host, also [`Pinned`] memory, and other devices; [`after`] makes a
//! future of what is enqueued, which owns what it is about until then.
//!
//! # What a launch can ask for
//!
//! The second argument of a launch is a [`Launch`]. [`cover`] makes one from an extent, [`stride`] for
//! kernels that loop over theirs; [`Launch::block_by_occupancy`] has the driver choose the block, and
//! [`Launch::shared`] sizes shared memory in elements. Its methods also ask for launch attributes:
//!
//! | to have | in the declaration | at the launch |
//! |---|---|---|
//! | blocks that wait for their whole grid | `#[cooperative]` | [`cooperative`](Launch::cooperative) |
//! | clusters of blocks | `#[cluster(2)]`, `__cluster_dims__`, `__block_size__` | [`cluster`](Launch::cluster) |
//! | a kernel that begins before the one in front ends | | [`programmatic_stream_serialization`](Launch::programmatic_stream_serialization) |
//! | an event before the kernel ends | | [`launch_completion_event`](Launch::launch_completion_event), [`programmatic_event`](Launch::programmatic_event) |
//! | a priority | | [`priority`](Launch::priority) |
//! | a memory-synchronisation domain | | [`mem_sync_domain`](Launch::mem_sync_domain), [`mem_sync_domain_map`](Launch::mem_sync_domain_map) |
//! | larger clusters where there is room, blocks spread | | [`preferred_cluster`](Launch::preferred_cluster), [`cluster_scheduling_policy`](Launch::cluster_scheduling_policy) |
//! | more L1 cache, or more shared memory | | [`shared_mem_carveout`](Launch::shared_mem_carveout) |
//! | an array that stays in the L2 cache | | [`access_policy_window`](Launch::access_policy_window), [`PersistingL2`] |
//!
//! Each is checked before the driver: against the PTX while the crate compiles, and against the device
//! at the launch, a cooperative grid with the number of blocks that run at a time. Nothing is made
//! smaller than it was asked for. A launch that asks for none of them is a plain `cuLaunchKernel`.
//!
//! [`Kernel::prepare`] checks all that once and leaves only the arguments to each launch. [`Kernel::replay`]
//! launches a kernel as a graph of one node, with other arguments each time: the host then takes half to
//! three quarters of the time of a `cuLaunchKernel`.
//!
//! # Graphs
//!
//! What is launched again and again can be built once, as a [`Graph`] of typed launches, and launched
//! as a whole for a few nanoseconds a kernel. Its arrays are borrowed or owned by the graph, nodes are
//! ordered by what they read and write, arguments are checked as those of a launch, and a node's can
//! be changed by the same typed call. Nodes [have attributes](Graph#attributes) too, a graph can be
//! [a node](Graph::add_graph) of another, and by a [`GraphCondition`] kernels decide what else of the
//! graph runs, or runs again.
//!
//! # Watching launches
//!
//! - [`timed`] measures by events what is enqueued on a stream, as a value to await or to wait for;
//!   a [`Timer`] does so again and again, and tells median and range of several rounds.
//! - `saxpy { .. }.describe(&stream, launch)`, or [`Kernel::describe`], gives the launch in one line
//!   for a log: a [`LaunchDescription`].
//! - With the feature `tracing` there are spans, target `gridcall`: `load` (`kernel`, `device`) and
//!   within it `compile` (`module`, `device`) at level `DEBUG`; `launch` (`kernel`, `grid`, `block`,
//!   `shared_mem_bytes`, `stream`, `device`) at level `TRACE`, while a kernel is enqueued.
//! - With the feature `nvtx` there are ranges of the same names in NVTX's domain `gridcall`, such as
//!   `launch saxpy (4, 1, 1) (256, 1, 1)`. They go through `libnvtx3interop.so.1` (CUDA 12.9 and
//!   later) or `libnvToolsExt.so.1` (earlier ones), which the loader must find; where it finds none,
//!   or no profiler listens, there are none.
//!
//! Without the features a launch holds nothing of them. With `tracing` and no subscriber it takes
//! some twenty instructions more, with `nvtx` and no profiler up to forty.
//!
//! # Switches
//!
//! `GRIDCALL_SYNC=1` in the environment synchronises after each launch of kernels loaded from then
//! on, and of graphs of them: an error of the kernel itself is then returned by its own launch, with its
//! declaration, shape and arguments. What goes into a capture is not waited for. `GRIDCALL_DRIVER` and
//! `GRIDCALL_SIGNATURES_ONLY` are told of at [`device`] and [`kernel`].
//!
//! With the feature `nvrtc`, `GRIDCALL_NVRTC` names its library where the system does not find it, and
//! `GRIDCALL_CACHE_DIR` the folder for what it compiled.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `emulator`: where [`device`] finds no GPU, the program runs on `gridcall-emulator` (Linux).
//! - `half`, `num-complex`, `float8`: those crates' types as scalars and elements.
//! - `dlpack`: tensors of other libraries through DLPack.
//! - `nvrtc`: kernels from CUDA source that is compiled while the program runs, by NVRTC.
//! - `pyo3`: arrays of Python libraries as arguments of functions that are exported to Python, and
//!   tensors that such functions return.
//! - `candle`: candle's tensors as arguments, in its custom ops and outside. candle links the driver
//!   and needs the CUDA toolkit to build.
//! - `tch`: tch's tensors as arguments. tch links PyTorch's libraries.
//! - `tracing`, `nvtx`: spans and ranges around loads and launches.
//!
//! # Kernels from source
//!
//! With the feature `nvrtc`, CUDA source is compiled while the program runs: see `nvrtc::Program`. Its
//! kernels are declared without `ptx = ..`, and the compiler itself compares the declarations.
//!
//! # Building
//!
//! Nothing of CUDA is needed to build: PTX files are read by the macro, and the driver is opened
//! when the program runs. cudarc asks `nvcc --version` for its bindings if there is an nvcc on the
//! path; where that one is newer than cudarc knows, set `CUDARC_CUDA_VERSION` (such as `13000`).

pub use cudarc;

/// Implements [`AsDeviceView`] for a struct around a device array: all that the array can be passed
/// as, the struct can.
///
/// The array is the struct's only field, or the one marked `#[view]`.
///
/// ```
/// use gridcall::{AsDeviceView, AsDeviceViewMut, cudarc::driver::CudaSlice};
///
/// #[derive(AsDeviceView, AsDeviceViewMut)]
/// struct Samples {
///     #[view]
///     samples: CudaSlice<f32>,
///     rate: u32,
/// }
/// # fn is_array<A: AsDeviceViewMut<f32>>() {}
/// # is_array::<Samples>();
/// # let rate = |samples: Samples| samples.rate;
/// ```
pub use gridcall_macros::AsDeviceView;

/// Implements [`AsDeviceViewMut`] for a struct around a device array that can be written; see
/// [`derive@AsDeviceView`].
pub use gridcall_macros::AsDeviceViewMut;

/// Implements [`KernelArg`] for a struct, so that kernels can take it by value.
///
/// The struct must be `#[repr(C)]` (or `#[repr(transparent)]`) and `Copy`; each field a
/// `KernelArg`. Where Rust would place a field other than CUDA does, as a `[f32; 4]` for a
/// `float4`, it does not compile, and says so. A fieldless enum with `#[repr(u8)]`, `#[repr(i32)]`
/// and so on is passed as that integer.
///
/// ```
/// use gridcall::{Float4, KernelArg};
///
/// /// `struct Ball { int id; float4 pos; };`
/// #[derive(Clone, Copy, KernelArg)]
/// #[repr(C)]
/// struct Ball {
///     id: i32,
///     pos: Float4,
/// }
/// # let _ = Ball { id: 1, pos: Float4::default() };
/// ```
///
/// References, `Box`, `Vec` and raw pointers are refused: they hold host addresses. A
/// [`DevicePointer`] field is accepted, and only `unsafe` kernels take such a struct.
///
/// `#[kernel_arg(crate = path)]` names this crate where it is not `gridcall`.
/// `#[kernel_arg(opaque)]` says that the fields are not those of the struct's counterpart, as for a
/// union: its size and alignment are compared then, and not its fields. `#[kernel_arg(name =
/// "ns::Name")]` is what C++ calls the struct, if it is not what Rust does: for templates that are
/// instantiated by it (`nvrtc`).
pub use gridcall_macros::KernelArg;

/// Declares CUDA kernels, and compares the declarations with the compiled kernels.
///
/// On a block, or on one function without a body:
///
/// ```
/// use gridcall::kernel;
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
///
///     /// # Safety
///     ///
///     /// As many threads as `y` has elements.
///     pub unsafe fn zero(y: &mut [f32]);
/// }
///
/// /// # Safety
/// ///
/// /// `n` is at most the number of elements.
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe fn relu(y: &mut [f32], n: i32);
/// # fn main() {}
/// ```
///
/// The [crate's documentation](crate#what-a-declaration-becomes) says what becomes of them, which
/// types there are, and what `safe` means.
///
/// # Options
///
/// - `ptx = "path"`: the PTX file, from the folder of the `Cargo.toml` of the crate that holds the
///   declaration; or `ptx = concat!(env!("OUT_DIR"), "/k.ptx")` for one that the build script made.
///   When the file changes, the crate is compiled again.
///   A list, `ptx = ["k.sm_75.ptx", "k.sm_90.ptx"]`, holds the kernels for several devices: each
///   file is checked, and the one that fits the device best is loaded. Without `ptx`, the kernel
///   is taken from a [`Module`] when the program runs.
/// - `cubin = "path"`, or a list: the same kernels as machine code, each file a cubin or a fatbin. The
///   first that is for the device is loaded in place of the PTX, so that nothing is compiled and PTX
///   may be newer than the driver knows; devices that none is for, and the emulator, load the PTX.
///   Only its entries (of a cubin) and, when it is loaded, the number and sizes of parameters are
///   compared: that it was compiled from the source of the PTX is the author's word.
/// - `cuda = "path"`: the CUDA source, or a signature as text, which the declaration is compared
///   with as well: pointee types, signs, `const`, names, and fields of structs that the file
///   defines.
/// - `unused = "deny"`: an array that the kernel's code never touches is an error.
/// - `crate = path`: where this crate is found, if not at `::gridcall`: renamed in `Cargo.toml`, or
///   re-exported by another.
///
/// # Attributes of a kernel
///
/// - `#[requires(condition, ..)]`: what must hold at each launch. Conditions speak of the
///   parameters (arrays have `len()` and `is_empty()`, optional ones also `is_some()` and
///   `is_none()`), of `grid` and `block` (`x`, `y`, `z`; `grid.blocks()`, `block.threads()`) and of
///   `shared_mem_bytes`. Integers, literals and fields of structs too, are of one saturating type,
///   so that `x.len() >= n * m` needs no cast and cannot wrap. A negative `n` fulfils it: a kernel that
///   is wrong for one asks for `n >= 0` too.
/// - `#[name("entry")]`: the entry in the PTX, if it is not named as the function; of a C++ name also
///   the readable form, `#[name("math::add<float>")]`. A kernel without `extern "C"` is found by its
///   plain name where one entry, or one overload, fits the declaration.
/// - `#[instances(T = { f32 => "add_f32", f64 => "add_f64" })]` on `fn add<T>(..)`: one declaration for
///   several entries, each checked. Without a list, the instances of a C++ template are told by
///   the names of the entries; where the module is compiled while the program runs (`nvrtc`), they
///   are listed by their types, `T = { f32, f64 }`. The handle of one is `add::load::<f32>(&ctx)?`, and takes
///   `add { .. }.arguments()`.
/// - `#[block(256)]`, `#[block(16, 16)]`: the one block that the kernel works with.
/// - `#[rank(1)]`: the number of axes that the kernel looks at. A launch along more is refused, as it
///   would run the same work several times, and so is a [`cover`] along fewer.
/// - `#[cooperative]`: every launch is a cooperative grid. A kernel whose code traps otherwise, as
///   `this_grid().sync()` does, must be declared so.
/// - `#[cluster(2)]`, `#[cluster(2, 1, 1)]`: every launch is in clusters of so many blocks.
/// - `#[may_alias(x, y)]`: arrays that may overlap though the kernel writes to one of them.
/// - `#[align(16)]`, before a parameter: the alignment in bytes that the kernel needs of an array's
///   first element, where it is more than that of the element type.
/// - Documentation, `#[cfg(..)]`, lint levels and `#[deprecated]` mean what they always do.
///
/// # Statics
///
/// `static mut NAME: Type;`, or `static NAME: Type;` for what nobody writes, declares a variable of the
/// module; see [`Static`]. `#[name("taps")]` gives its name in the PTX, if that is another; of a C++
/// name also the readable form, `#[name("math::offset")]`.
///
/// # Without a compiler for CUDA
///
/// Where a PTX file is missing since nothing could make it, `GRIDCALL_SIGNATURES_ONLY=1` in the
/// environment of the build (or `DOCS_RS`, which docs.rs sets) lets the crate compile with the
/// declarations unchecked; loading such a kernel is an error.
pub use gridcall_macros::kernel;

#[doc(hidden)]
pub use gridcall_view::Tracking;
#[cfg(feature = "tch")]
pub use gridcall_view::tch;
pub use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, BorrowedView, BorrowedViewMut, DType, Element, Guard, Layout,
    Place, Shaped, StreamRef, View, ViewError, ViewErrorKind,
};
#[cfg(feature = "dlpack")]
pub use gridcall_view::{BorrowedTensor, ForeignStream, Order, Tensor, TypedTensor, dlpack};

mod arg;
mod attributes;
mod awaiting;
mod buffer;
mod call;
#[cfg(feature = "candle")]
pub mod candle;
mod cast;
mod cell;
mod contract;
mod counterpart;
mod current;
mod declaration;
mod describe;
mod device;
mod driver;
mod error;
mod event;
mod function;
mod graph;
mod kernel;
mod l2;
mod launch;
mod layout;
#[cfg_attr(
    not(feature = "nvrtc"),
    expect(dead_code, reason = "`verify!` needs less of it")
)]
mod libnvrtc;
mod load;
mod module;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
mod occupancy;
mod params;
mod pointer;
mod prepared;
#[cfg(feature = "pyo3")]
pub mod python;
mod relaxed;
mod replay;
mod signature;
mod strided;
mod surface;
mod symbol;
mod tensor_map;
mod text;
mod texture;
mod timing;
mod trace;
mod variant;
mod vector;
mod verify;

pub use arg::KernelArg;
pub use attributes::{
    AccessPolicyWindow, AccessProperty, Cluster, ClusterSchedulingPolicy, MemSyncDomain,
    MemSyncDomainMap, SharedMemCarveout, Trigger,
};
pub use awaiting::{After, after, after_event};
pub use buffer::{
    ArrayError, ArrayErrorKind, ArrayShape, Buffer, BufferSlice, BufferSliceMut, CudaArray,
    Extents, PeerSlice, PeerSliceMut, Pinned,
};
pub use cast::Cast;
pub use describe::LaunchDescription;
pub use device::device;
pub use driver::DriverCode;
pub use error::{
    ArgumentError, AttributeError, Axis, BufferError, BufferErrorKind, GeometryError, LaunchError,
    LaunchErrorKind, LoadError, LoadErrorKind, OtherModule, TimingError,
};
pub use function::{DeviceFn, DeviceFunction};
pub use graph::{
    Capture, CaptureSlice, CaptureSliceMut, ChildGraph, Graph, GraphBuffers, GraphCondition,
    GraphError, GraphErrorKind, GraphExec, GraphSlice, GraphSliceMut, Node,
};
pub use kernel::{Kernel, Safe, Unsafe};
pub use l2::{L2Error, PersistingL2};
pub use launch::{Block, Extent, Grid, Launch, LaunchShape, Length, cover, stride};
pub use module::Module;
pub use pointer::{DevicePointer, DevicePointerMut};
pub use prepared::Prepared;
pub use replay::Replay;
pub use strided::{CUDA_HEADER, Strided, StridedMut};
pub use surface::{AsSurface, AsSurfaceMut, Surface, SurfaceMut};
pub use symbol::{Static, Symbol, SymbolError, SymbolErrorKind, SymbolView};
pub use tensor_map::{
    AsTensorMap, AsTensorMapMut, Im2col, Interleave, L2Promotion, OobFill, Swizzle, TensorElement,
    TensorMap, TensorMapError, TensorMapErrorKind, TensorMapMut, Tile,
};
pub use texture::{
    AddressMode, AsTexture, FilterMode, Sampler, Texel, Texture, TextureError, TextureErrorKind,
};
pub use timing::{Elapsed, Rounds, Timer, timed};
pub use vector::*;

/// For the code that the macros generate. Anything here may change in any release.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        attributes::Needs,
        call::{Call, Finish, Purpose, Span, describe, launch, launch_unsafe},
        cell::KernelCell,
        contract::{AnyField, Extents, Field, Int, ViewOf},
        counterpart::{
            Counterpart, CounterpartField, LayoutOf, NoLayout, check_access, check_fields,
        },
        declaration::{
            Cpp, Declaration, Image, Instance, MachineCode, Param, Pass, StaticDeclaration, Touch,
            Variable, Variant,
        },
        describe::Arrays,
        graph::ConditionHandle,
        kernel::{Arguments, Declared, Family, NoView},
        layout::{
            ArgLayout, Class, Expected, Field as ArgField, Places, check_element, check_layout,
            check_safe, check_symbol, size_and_align,
        },
        params::Params,
        signature::{PtxFunction, PtxPart, Signature, check_calls, check_functions},
        strided::{StridedOf, StridedView},
        symbol::{
            DeclaredFn, DeclaredInModule, DeclaredInPtx, DeclaredMut, DeclaredSymbol,
            DeclaredValue, SymbolCell,
        },
        tensor_map::{Descriptor, TensorOf, TensorView},
        texture::{Object, TextureOf, TextureView},
        verify::{AnyDeclaration, Verified, declaration, has_compiler, verify},
    };
}
