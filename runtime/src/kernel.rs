//! The handle of a loaded kernel, and what ties a declaration to it.

use std::{fmt, marker::PhantomData, sync::Arc};

use cudarc::driver::{CudaContext, CudaStream, sys::CUfunction};
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, StreamRef, View, ViewError};

use crate::{
    call::{Call, Purpose, describe_loaded, launch_loaded},
    cell::KernelCell,
    describe::{Arrays, LaunchDescription},
    error::{LaunchError, LaunchErrorKind, LoadError, LoadErrorKind},
    graph::Replayed,
    launch::{Block, Launch, LaunchShape},
    load::{self, Loaded},
    module::Module,
    prepared::Prepared,
    replay::Replay,
};

/// A kernel that is loaded in one context: `D` is the struct that `#[kernel]` made of its
/// declaration, `S` whether every caller is safe.
///
/// Loaded by `D::load(&ctx)`, at start-up rather than at the first launch. Cheap to clone, may be
/// sent to and shared between threads, and keeps its context alive.
///
/// ```no_run
/// use gridcall::{Kernel, cover, kernel};
/// # use gridcall::cudarc::driver::{CudaContext, CudaSlice};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// struct Model { saxpy: Kernel<saxpy> }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// let model = Model { saxpy: saxpy::load(&ctx)? };
/// # let x: CudaSlice<f32> = stream.alloc_zeros(100)?;
/// # let mut y: CudaSlice<f32> = stream.alloc_zeros(100)?;
/// model.saxpy.launch(&stream, cover(100), saxpy { n: 100, a: 2.0, x: &x, y: &mut y })?;
/// # Ok(())
/// # }
/// ```
pub struct Kernel<D, S = Safe> {
    loaded: Arc<Loaded>,
    context: Arc<CudaContext>,
    declared: PhantomData<fn() -> (D, S)>,
}

/// A kernel that is safe for every caller (`safe fn`).
#[derive(Clone, Copy, Debug)]
pub struct Safe;

/// A kernel whose callers vouch for something (`unsafe fn`).
#[derive(Clone, Copy, Debug)]
pub struct Unsafe;

/// What [`Safe`] and [`Unsafe`] say to the compiler.
pub trait Safety {
    /// Whether every caller is safe.
    const SAFE: bool;
}

impl Safety for Safe {
    const SAFE: bool = true;
}

impl Safety for Unsafe {
    const SAFE: bool = false;
}

/// A declaration. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not one declared kernel",
    label = "not a kernel",
    note = "of a kernel that is declared for several types, name one: `instance::<{Self}, f32>()`"
)]
pub trait Declared {
    /// [`Safe`] or [`Unsafe`].
    type Safety: Safety;

    /// `#[rank(..)]`, or 0.
    const RANK: u8;

    /// Whether the kernel may ask for attributes that a launch does not ask for. Where the PTX is known,
    /// most certainly do not, and their launches need not look.
    const EXAMINED: bool;

    /// Whether it uses a variable that its block declares `static mut`.
    const TOUCHES: bool;

    /// The kernel and where it is loaded.
    fn cell() -> &'static KernelCell;
}

/// A generic declaration, and its instance for a type. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not declared for several types",
    label = "no instance for `{T}`",
    note = "a kernel that is declared for its types alone is added by `kernel::<{Self}>()`"
)]
pub trait Family<T> {
    /// The declaration of the instance.
    type Kernel: Declared;
}

/// The arguments of one launch. Implemented by `#[kernel]`.
///
/// # Safety
///
/// `check` and `run` must take every step of the launch path in order, for the kernel of
/// `Declared`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the arguments of a kernel",
    label = "write the kernel's name with its arguments by theirs, as in `saxpy {{ n, a: 2.0, x: &x, y: &mut y }}`"
)]
pub unsafe trait Arguments {
    /// The declaration that these are arguments of.
    type Declared: Declared;

    /// The parameters, packed: `Params<_>`.
    type Params: AsRef<[u8]> + AsMut<[u8]>;

    /// How many of the arguments are arrays, those that are left out too, or conditions of a graph.
    const ARRAYS: usize;

    /// Describes the arrays, checks and packs all arguments. Enqueues nothing.
    ///
    /// # Errors
    ///
    /// If one of them cannot be what the kernel takes.
    fn check<P: Purpose>(&mut self, call: &Call<'_, P>) -> Result<Self::Params, P::Stop>;

    /// Shows each array, for a description of the launch.
    fn see(&self, _arrays: &mut Arrays) {}

    /// Acquires the arrays, enqueues the kernel, and finishes.
    ///
    /// # Errors
    ///
    /// If any of the steps fails.
    ///
    /// # Safety
    ///
    /// `params` must be what `check` returned for the same arguments and stream.
    unsafe fn run(self, call: &Call<'_>, params: &mut Self::Params) -> Result<(), LaunchError>;
}

impl<D: Declared> Kernel<D, D::Safety> {
    /// Loads the kernel, unless it is loaded in this context already.
    #[doc(hidden)]
    pub fn load(context: &Arc<CudaContext>) -> Result<Self, LoadError> {
        let loaded = D::cell().get(context)?;
        Ok(Kernel {
            loaded,
            context: context.clone(),
            declared: PhantomData,
        })
    }
}

impl<D: Declared> Kernel<D, D::Safety> {
    /// Takes the kernel from a module.
    ///
    /// # Safety
    ///
    /// The module's kernel must be the one that is declared.
    #[doc(hidden)]
    pub unsafe fn load_from(module: &Module) -> Result<Self, LoadError> {
        let loaded = Arc::new(module.kernel(D::cell().declaration())?);
        Ok(Kernel {
            loaded,
            context: module.context().clone(),
            declared: PhantomData,
        })
    }
}

impl<D: Declared> Kernel<D, Safe> {
    /// Launches the kernel on `stream`.
    ///
    /// # Errors
    ///
    /// If an argument cannot be what the kernel takes, a contract does not hold, the launch's
    /// shape is not possible here, the stream is being captured, or the driver refuses; in all
    /// these cases nothing was launched.
    #[inline(always)]
    pub fn launch<'e, A: Arguments<Declared = D>>(
        &self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.run(stream, launch.into(), arguments)
    }
}

impl<D: Declared> Kernel<D, Unsafe> {
    /// Launches the kernel on `stream`.
    ///
    /// # Safety
    ///
    /// What the declaration's `# Safety` asks for. Checked are the arguments' types, layouts,
    /// devices and overlap, and the declared contracts; not that the kernel stays within its
    /// arrays, nor what raw device pointers point to.
    ///
    /// # Errors
    ///
    /// As for safe kernels; a stream that is being captured is no error here.
    #[inline(always)]
    pub unsafe fn launch<'e, A: Arguments<Declared = D>>(
        &self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.run(stream, launch.into(), arguments)
    }
}

impl<D: Declared<Safety = S>, S> Kernel<D, S> {
    /// Checks once all that does not depend on arguments: the launch's shape, its attributes, shared
    /// memory, the context. For loops that launch one shape again and again.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::{cover, kernel};
    /// # #[kernel(ptx = "../kernels/vector.ptx")]
    /// # unsafe extern "C" {
    /// #     #[requires(y.len() >= n)]
    /// #     safe fn scale(y: &mut [f32], a: f32, n: i32);
    /// # }
    /// let stream = gridcall::device(0)?.default_stream();
    /// let mut y = stream.clone_htod(&[1.0_f32; 1000])?;
    /// let prepared = scale::load(stream.context())?.prepare(&stream, cover(1000))?;
    /// for _ in 0..10 {
    ///     prepared.launch(scale { y: &mut y, a: 0.5, n: 1000 })?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the launch is not possible with any arguments.
    pub fn prepare<'e>(
        &self,
        stream: &Arc<CudaStream>,
        launch: impl LaunchShape<'e>,
    ) -> Result<Prepared<'e, D, S>, LaunchError> {
        Prepared::new(self.clone(), stream.clone(), launch.into())
    }

    /// For loops whose time is that of their launches: the kernel as a graph of one node, whose launch
    /// takes the host half to three quarters of the time.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::{cover, kernel};
    /// # #[kernel(ptx = "../kernels/vector.ptx")]
    /// # unsafe extern "C" {
    /// #     #[requires(y.len() >= n)]
    /// #     safe fn scale(y: &mut [f32], a: f32, n: i32);
    /// # }
    /// let stream = gridcall::device(0)?.new_stream()?;
    /// let mut y = stream.clone_htod(&[1.0_f32; 1000])?;
    /// let mut replay = scale::load(stream.context())?.replay()?;
    /// for step in 1..10 {
    ///     let a = 1.0 / step as f32;
    ///     replay.launch(&stream, cover(1000), scale { y: &mut y, a, n: 1000 })?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the driver has no graphs like these: CUDA 12.3 brought them.
    pub fn replay(&self) -> Result<Replay<D, S>, LoadError> {
        Ok(Replay::new(Replayed::new(&self.context)?, self.clone()))
    }
}

impl<D, S> Kernel<D, S> {
    /// The launch in one line, for a log: the kernel, its shape, and each argument. Nothing is
    /// launched.
    ///
    /// ```no_run
    /// # use gridcall::{cover, kernel};
    /// # #[kernel(ptx = "../kernels/vector.ptx")]
    /// # unsafe extern "C" {
    /// #     #[requires(y.len() >= n)]
    /// #     pub safe fn scale(y: &mut [f32], a: f32, n: i32);
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ctx = gridcall::device(0)?;
    /// # let stream = ctx.default_stream();
    /// # let mut y = stream.alloc_zeros(100)?;
    /// let kernel = scale::load(&ctx)?;
    /// let mut arguments = scale { y: &mut y, a: 2.0, n: 100 };
    /// println!("{}", kernel.describe(&stream, cover(100), &mut arguments)?);
    /// kernel.launch(&stream, cover(100), arguments)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the launch's shape is not possible here, or an argument would be refused.
    pub fn describe<'e, A: Arguments<Declared = D>>(
        &self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: &mut A,
    ) -> Result<LaunchDescription, LaunchError> {
        if self.is_elsewhere(stream) {
            return Err(self.other_context(stream));
        }
        describe_loaded(&self.loaded, stream, launch.into(), arguments)
    }

    /// The context the kernel is loaded in.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The driver's handle, for driver calls that are not offered here. It lives as long as the
    /// kernel does.
    #[must_use]
    pub fn cu_function(&self) -> CUfunction {
        self.loaded.function
    }

    /// The largest number of threads of a block that the kernel can be launched with here.
    #[must_use]
    pub fn max_threads_per_block(&self) -> u32 {
        self.loaded.max_threads_per_block
    }

    /// The registers that one thread takes.
    #[must_use]
    pub fn registers(&self) -> u32 {
        self.loaded.registers
    }

    /// The static shared memory of a block in bytes.
    #[must_use]
    pub fn static_shared_mem_bytes(&self) -> u32 {
        self.loaded.static_shared_mem
    }

    /// The largest dynamic shared memory of a block in bytes.
    #[must_use]
    pub fn max_dynamic_shared_mem_bytes(&self) -> u32 {
        self.loaded.max_dynamic_shared_mem()
    }

    /// The blocks of `block_threads` threads and so much dynamic shared memory that one
    /// multiprocessor runs at a time.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn max_active_blocks_per_multiprocessor(
        &self,
        block_threads: u32,
        dynamic_shared_mem_bytes: usize,
    ) -> Result<u32, LoadError> {
        self.enter()?;
        self.loaded
            .active_blocks(block_threads, dynamic_shared_mem_bytes)
            .map_err(|(call, code)| load::failed(self.loaded.declaration, call, code))
    }

    /// The block with which most threads of a multiprocessor are at work, if each has so many bytes
    /// of dynamic shared memory: that of [`Launch::block_by_occupancy`] along one axis.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::kernel;
    /// # #[kernel(ptx = "../kernels/vector.ptx")]
    /// # unsafe extern "C" { safe fn relu(y: &mut [f32], n: i32); }
    /// let relu = relu::load(&gridcall::device(0)?)?;
    /// let block = relu.suggested_block(0)?;
    /// let each = relu.max_active_blocks_per_multiprocessor(block.x, 0)?;
    /// println!("{each} blocks of {} threads a multiprocessor", block.x);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn suggested_block(&self, dynamic_shared_mem_bytes: u32) -> Result<Block, LoadError> {
        self.enter()?;
        self.loaded
            .suggested_block(1, dynamic_shared_mem_bytes)
            .map_err(|reason| {
                LoadErrorKind::Occupancy {
                    kernel: self.loaded.declaration.kernel,
                    reason,
                }
                .into()
            })
    }

    fn enter(&self) -> Result<(), LoadError> {
        self.context.bind_to_thread().map_err(|source| {
            let ordinal = self.context.ordinal();
            LoadErrorKind::Context { ordinal, source }.into()
        })
    }

    pub(crate) fn share(&self) -> Arc<Loaded> {
        self.loaded.clone()
    }

    #[inline(always)]
    fn run<A: Arguments>(
        &self,
        stream: &CudaStream,
        launch: Launch<'_>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.check_context(stream)?;
        launch_loaded(&self.loaded, stream, launch, arguments)
    }

    #[inline(always)]
    pub(crate) fn check_context(&self, stream: &CudaStream) -> Result<(), LaunchError> {
        if self.is_elsewhere(stream) {
            return Err(self.other_context(stream));
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    #[inline(always)]
    fn is_elsewhere(&self, stream: &CudaStream) -> bool {
        !Arc::ptr_eq(&self.context, stream.context())
            && self.context.cu_ctx() != stream.context().cu_ctx()
    }

    #[cold]
    fn other_context(&self, stream: &CudaStream) -> LaunchError {
        LaunchError::new(
            self.loaded.declaration.kernel,
            LaunchErrorKind::OtherContext {
                kernel: self.context.ordinal(),
                stream: stream.context().ordinal(),
            },
        )
    }
}

impl<D, S> Clone for Kernel<D, S> {
    fn clone(&self) -> Self {
        Kernel {
            loaded: self.loaded.clone(),
            context: self.context.clone(),
            declared: PhantomData,
        }
    }
}

impl<D, S> fmt::Debug for Kernel<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declaration = self.loaded.declaration;
        f.debug_struct("Kernel")
            .field("kernel", &declaration.kernel)
            .field("ptx", &declaration.path())
            .field("device", &self.context.ordinal())
            .finish_non_exhaustive()
    }
}

/// Stands for an argument that is not there, where a declaration is named without arguments. It
/// has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoView {}

// SAFETY: there is no value to describe.
unsafe impl<T> AsDeviceView<T> for NoView {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        match *self {}
    }

    fn acquire<'a>(&'a self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        match *self {}
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsDeviceViewMut<T> for NoView {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        match *self {}
    }

    fn acquire_mut<'a>(&'a mut self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        match *self {}
    }
}
