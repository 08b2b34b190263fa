//! The launch path: describe, check, pack, acquire, one driver call, finish.
//!
//! The steps are called by the code that `#[kernel]` generates, in that order, once for each
//! argument. On success nothing here allocates, locks or looks up. The driver is asked one thing
//! beside the launch: for safe kernels, whether a stream that can be captured is; and, where several
//! streams are in use, which context is current.

#![expect(
    clippy::missing_errors_doc,
    reason = "called by generated code only; users read of the errors at the kernel's function"
)]

use std::{
    cell::Cell,
    ffi::c_void,
    fmt::{self, Write},
    mem::ManuallyDrop,
    ptr,
};

use cudarc::driver::{
    CudaStream,
    sys::{CUcontext, CUstream},
};
use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, Guard, Layout, Place, StreamRef, View, ViewError, ViewErrorKind,
};

use crate::{
    attributes::{Attributes, Examined, examine},
    cell::KernelCell,
    contract::{Extents, Int},
    describe::{Arrays, LaunchDescription},
    driver::DriverCode,
    error::{
        ArgumentError, AttributeError, LaunchError, LaunchErrorKind, LoadError, LoadErrorKind,
    },
    kernel::{Arguments, Declared, Safe, Safety},
    launch::{Dims, Launch},
    load::Loaded,
    params::Params,
    symbol::Acquired,
    trace,
};

/// Launches a safe kernel, through the one that is loaded for the stream's context.
#[inline(always)]
pub fn launch<A>(arguments: A, stream: &CudaStream, launch: Launch<'_>) -> Result<(), LaunchError>
where
    A: Arguments<Declared: Declared<Safety = Safe>>,
{
    // SAFETY: every caller of a safe kernel is safe, as its declaration vouches.
    unsafe { launch_unsafe(arguments, stream, launch) }
}

/// Launches any kernel, through the one that is loaded for the stream's context.
///
/// # Safety
///
/// What the kernel's declaration asks of its callers.
#[inline(always)]
pub unsafe fn launch_unsafe<A: Arguments>(
    arguments: A,
    stream: &CudaStream,
    launch: Launch<'_>,
) -> Result<(), LaunchError> {
    let kernel = A::Declared::cell();
    match kernel.find(stream) {
        Ok(loaded) => launch_loaded(loaded, stream, launch, arguments),
        Err(error) => Err(not_loaded(
            kernel,
            <A::Declared as Declared>::Safety::SAFE,
            error,
        )),
    }
}

/// Describes, checks and packs the arguments, acquires them, enqueues the kernel and finishes: with a
/// shape that was resolved, on a stream that [`begin`] looked at.
///
/// No function, since handing the arguments on to one copies them.
macro_rules! launch_resolved {
    ($kernel:expr, $stream:expr, $dims:expr, $attributes:expr, $arguments:ident: $ty:ident) => {{
        let (kernel, stream, dims) = ($kernel, $stream, $dims);
        let attributes: Option<&Attributes<'_>> = $attributes;
        let call = Call::new(kernel, StreamRef::from(stream), dims);
        // What has attributes is launched out of line.
        call.mixed.set(attributes.is_some());
        let mut params = $arguments.check(&call)?;
        if dims.is_empty() {
            return Ok(());
        }
        let touches = <$ty::Declared as Declared>::TOUCHES;
        if !$ty::ARRAYS && !touches && attributes.is_none() {
            // SAFETY: the parameters are those of these arguments.
            return unsafe { $arguments.run(&call, &mut params) };
        }
        let settled = call.all_settled();
        let together = touches || kernel.synchronous || call.mixed.get();
        if together || !settled && !is_alone(stream) {
            let dims = dims.numbers();
            // SAFETY: the parameters are those of these arguments.
            return unsafe {
                launch_in_order(kernel, stream, dims, attributes, $arguments, &mut params)
            };
        }
        // SAFETY: all arrays are settled on the stream, or if some are not, cudarc orders nothing now,
        // and what decides that is the same for the stream and for those. `Call::finish` looks again,
        // and waits.
        let alone = unsafe { StreamRef::from(stream).alone() };
        let mut call = Call::new(kernel, alone, dims);
        call.goes_on = true;
        call.waits_late.set(!settled);
        // SAFETY: the parameters are those of these arguments.
        unsafe { $arguments.run(&call, &mut params) }
    }};
}

/// Launches a kernel that is loaded in the stream's context.
#[inline(always)]
pub(crate) fn launch_loaded<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: Launch<'_>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let safe = <A::Declared as Declared>::Safety::SAFE;
    begin(kernel, stream, safe, launch.dynamic_shared_mem_bytes())?;
    if launch.attributes.any() || A::Declared::EXAMINED && kernel.needs.any() {
        // A copy, so that only this puts it into memory.
        let copy = launch;
        return launch_examined(kernel, stream, &copy, arguments);
    }
    let dims = resolve::<A::Declared>(kernel, launch)?;
    launch_resolved!(kernel, stream, dims, None, arguments: A)
}

/// Launches a kernel with attributes, its own or those of this launch.
#[cold]
#[inline(never)]
fn launch_examined<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: &Launch<'_>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let context = stream.context().cu_ctx();
    let dims = resolve_examined::<A::Declared>(kernel, context, launch)?;
    let attributes = launch.attributes.of_launch(kernel);
    let call = Call::new(kernel, StreamRef::from(stream), dims);
    let mut params = arguments.check(&call)?;
    if dims.is_empty() {
        return Ok(());
    }
    let (dims, attributes) = (dims.numbers(), Some(&attributes));
    // SAFETY: the parameters are those of these arguments.
    unsafe { launch_in_order(kernel, stream, dims, attributes, arguments, &mut params) }
}

/// The device of arrays that are of a graph, and of the stream that stands for the graph where the
/// arguments of its nodes are checked.
pub(crate) const FOREIGN: i32 = i32::MIN;

/// Describes, checks and packs the arguments of a graph's node, as for a launch. Enqueues nothing.
///
/// `graph` stands for the graph: all arrays must be tracked by what it is tracked by. `attributes` are
/// the node's, if it [has any or may have](has_attributes). The kernel's context must be current then,
/// and if the launch asks for dynamic shared memory.
#[inline(always)]
pub(crate) fn check_node<A: Arguments>(
    kernel: &Loaded,
    graph: StreamRef<'_>,
    launch: Launch<'_>,
    attributes: Option<&Attributes<'static>>,
    arguments: &mut A,
) -> Result<(Dims, A::Params), LaunchError> {
    if A::Declared::TOUCHES
        && let Some(touched) = &kernel.touched
    {
        return Err(error(kernel, LaunchErrorKind::Symbol(touched.of_node())));
    }
    let dims = match attributes {
        None => resolve::<A::Declared>(kernel, launch)?,
        Some(attributes) => {
            // A copy, so that only this puts it into memory.
            let copy = launch;
            resolve_node::<A::Declared>(kernel, attributes, &copy)?
        }
    };
    let params = arguments.check(&Call::new(kernel, graph, dims))?;
    Ok((dims, params))
}

/// Whether a launch asks for attributes, or its kernel may.
#[inline(always)]
pub(crate) fn has_attributes<D: Declared>(kernel: &Loaded, launch: &Launch<'_>) -> bool {
    launch.attributes.any() || D::EXAMINED && kernel.needs.any()
}

/// The attributes of a node.
#[cold]
pub(crate) fn attributes_of_node(
    kernel: &Loaded,
    launch: &Launch<'_>,
) -> Result<Attributes<'static>, LaunchError> {
    let attributes = launch.attributes.of_node(kernel);
    attributes.map_err(|reason| error(kernel, LaunchErrorKind::Attribute(reason)))
}

/// The shape of a node, whose attributes are examined, and are those that the launch asks for.
#[cold]
#[inline(never)]
fn resolve_node<D: Declared>(
    kernel: &Loaded,
    attributes: &Attributes<'static>,
    launch: &Launch<'_>,
) -> Result<Dims, LaunchError> {
    let asked = attributes_of_node(kernel, launch)?;
    if asked != *attributes {
        let reason = AttributeError::OfUpdate {
            node: attributes.or_none(),
            asked: asked.or_none(),
        };
        return Err(error(kernel, LaunchErrorKind::Attribute(reason)));
    }
    // Only events are compared with a context, and a node records none.
    resolve_examined::<D>(kernel, ptr::null_mut(), launch)
}

/// Launches a kernel of which all but the arguments was checked.
#[inline(always)]
pub(crate) fn launch_prepared<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    dims: Dims,
    attributes: Option<&Attributes<'_>>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let safe = <A::Declared as Declared>::Safety::SAFE;
    begin(kernel, stream, safe, 0)?;
    launch_resolved!(kernel, stream, dims, attributes, arguments: A)
}

/// Describes the launch of a kernel through the one that is loaded for the stream's context.
pub fn describe<A: Arguments>(
    arguments: &mut A,
    stream: &CudaStream,
    launch: Launch<'_>,
) -> Result<LaunchDescription, LaunchError> {
    let kernel = A::Declared::cell();
    match kernel.find(stream) {
        Ok(loaded) => describe_loaded(loaded, stream, launch, arguments),
        Err(error) => Err(not_loaded(kernel, false, error)),
    }
}

/// Describes the launch of a kernel that is loaded in the stream's context.
pub(crate) fn describe_loaded<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: Launch<'_>,
    arguments: &mut A,
) -> Result<LaunchDescription, LaunchError> {
    // For the opt-in to shared memory.
    rebind(kernel, stream)?;
    let dims = if launch.attributes.any() || kernel.needs.any() {
        resolve_examined::<A::Declared>(kernel, stream.context().cu_ctx(), &launch)?
    } else {
        resolve::<A::Declared>(kernel, launch)?
    };
    let params = arguments.check(&Call::new(kernel, StreamRef::from(stream), dims))?;
    let arrays = Arrays::of(arguments);
    let attributes = launch.attributes.of_launch(kernel);
    let (dims, stream, params) = (dims.numbers(), stream.cu_stream(), params.as_ref());
    Ok(LaunchDescription::new(
        kernel,
        dims,
        stream,
        params,
        &arrays,
        Some(&attributes),
    ))
}

/// The end of a launch that has attributes, that is waited for, or whose arrays and symbols are to
/// be ordered with what other streams do.
///
/// # Safety
///
/// As for [`Arguments::run`].
#[inline(never)]
unsafe fn launch_in_order<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    dims: [u32; 7],
    attributes: Option<&Attributes<'_>>,
    arguments: A,
    params: &mut A::Params,
) -> Result<(), LaunchError> {
    // Arrays are acquired in the stream's context.
    rebind(kernel, stream)?;
    let symbol = |symbol| error(kernel, LaunchErrorKind::Symbol(symbol));
    let acquired = match &kernel.touched {
        None => None,
        Some(touched) => {
            // SAFETY: the stream is borrowed, in the module's context, which is current.
            let acquired = unsafe { Acquired::new(&touched.0, stream.cu_stream()) };
            acquired.map_err(symbol)?
        }
    };
    let dims = Dims::from_numbers(dims);
    // What is acquired cannot be looked at any more.
    let arrays = kernel.synchronous.then(|| Arrays::of(&arguments));
    let mut call = Call::new(kernel, StreamRef::from(stream).of_one_launch(), dims);
    call.arrays = arrays.as_ref();
    call.attributes = attributes;
    // SAFETY: the caller vouches for the parameters.
    unsafe { arguments.run(&call, params) }?;
    match acquired {
        None => Ok(()),
        Some(acquired) => acquired.finish().map_err(symbol),
    }
}

/// Whether cudarc neither waits for, nor records, uses of arrays on this stream.
#[inline(always)]
fn is_alone(stream: &CudaStream) -> bool {
    !stream.context().is_managing_stream_synchronization()
}

/// Checks that the stream can be launched on.
///
/// The stream's context need not be current: the driver refuses what would run in another, and
/// whoever is refused makes it current and tries again.
#[inline(always)]
pub(crate) fn begin(
    kernel: &Loaded,
    stream: &CudaStream,
    safe: bool,
    shared_mem_bytes: u64,
) -> Result<(), LaunchError> {
    if let Err(earlier) = stream.context().check_err() {
        return Err(error(kernel, LaunchErrorKind::Earlier(earlier)));
    }
    if safe && !is_legacy(stream) {
        let mut capturing = 0;
        // SAFETY: the stream is borrowed; `capturing` takes the answer.
        let code =
            unsafe { (kernel.driver.stream_is_capturing)(stream.cu_stream(), &raw mut capturing) };
        if code.result().is_err() || capturing != 0 {
            refuse_capture(kernel, stream)?;
        }
    }
    if shared_mem_bytes > u64::from(kernel.shared_mem_granted()) {
        // The opt-in asks for the kernel's context.
        rebind(kernel, stream)?;
    }
    Ok(())
}

/// The shape of a launch within all limits.
#[inline(always)]
fn resolve<D: Declared>(kernel: &Loaded, launch: Launch<'_>) -> Result<Dims, LaunchError> {
    let dims = match Dims::resolve(launch, kernel) {
        Ok(dims) => dims,
        Err(geometry) => return Err(error(kernel, LaunchErrorKind::Geometry(geometry))),
    };
    if D::RANK != 0
        && let Err(geometry) = dims.check_rank(launch, D::RANK)
    {
        return Err(error(kernel, LaunchErrorKind::Geometry(geometry)));
    }
    Ok(dims)
}

/// The shape of a launch within all limits and as its attributes need it, which are examined, on a
/// stream of this context.
#[inline(never)]
pub(crate) fn resolve_examined<D: Declared>(
    kernel: &Loaded,
    context: CUcontext,
    launch: &Launch<'_>,
) -> Result<Dims, LaunchError> {
    let examined = Examined {
        attributes: &launch.attributes,
        dims: resolve::<D>(kernel, *launch)?,
        covered: launch.covered(),
        safe: D::Safety::SAFE,
        context,
    };
    examine(kernel, &examined).map_err(|kind| error(kernel, kind))
}

/// Whether it is the default stream of old, which cannot be captured: the handles 0 and
/// `CU_STREAM_LEGACY`.
#[inline(always)]
fn is_legacy(stream: &CudaStream) -> bool {
    stream.cu_stream().addr() <= 1
}

/// One launch, while its arguments are described, checked, acquired and released.
///
/// No method hands a reference to it to a function that is not inlined: it exists in registers.
#[derive(Debug)]
pub struct Call<'a> {
    kernel: &'a Loaded,
    stream: StreamRef<'a>,
    dims: Dims,
    /// What the launch asks for besides.
    attributes: Option<&'a Attributes<'a>>,
    /// Whether an array was described that Rust's borrow rules do not guard.
    unguarded: Cell<bool>,
    /// How many arrays were described.
    described: Cell<usize>,
    /// How many of them are settled on the stream.
    settled: Cell<usize>,
    /// Whether one of them is not, and its tracker is not the stream's either.
    mixed: Cell<bool>,
    /// Whether the launch is made alone, for as long as cudarc orders nothing.
    waits_late: Cell<bool>,
    /// Whether it is known not to be waited for (`GRIDCALL_SYNC=1`).
    goes_on: bool,
    /// What is known of the arrays, in case that it is and fails.
    arrays: Option<&'a Arrays>,
}

impl<'a> Call<'a> {
    #[inline(always)]
    fn new(kernel: &'a Loaded, stream: StreamRef<'a>, dims: Dims) -> Call<'a> {
        Call {
            kernel,
            stream,
            dims,
            attributes: None,
            unguarded: Cell::new(false),
            described: Cell::new(0),
            settled: Cell::new(0),
            mixed: Cell::new(false),
            waits_late: Cell::new(false),
            goes_on: false,
            arrays: None,
        }
    }

    /// Describes an array that the kernel reads: contiguous, in the stream's context, its first
    /// element aligned to `align` bytes.
    #[inline(always)]
    pub fn read<T, V: AsDeviceView<T> + ?Sized>(
        &self,
        index: usize,
        align: usize,
        array: &V,
    ) -> Result<Span, LaunchError> {
        match array.describe() {
            Ok(view) => self.span::<T>(index, align, view, false, || array.make_contiguous()),
            Err(error) => Err(view_error(self.kernel, index, error)),
        }
    }

    /// Describes an array that the kernel writes, and that its owner lets be written.
    #[inline(always)]
    pub fn write<T, V: AsDeviceViewMut<T> + ?Sized>(
        &self,
        index: usize,
        align: usize,
        array: &mut V,
    ) -> Result<Span, LaunchError> {
        match array.describe_mut() {
            Ok(view) if view.is_read_only() => Err(read_only(self.kernel, index)),
            Ok(view) => self.span::<T>(index, align, view, true, || array.make_contiguous_mut()),
            Err(error) => Err(view_error(self.kernel, index, error)),
        }
    }

    /// Describes an array that may be left out.
    #[inline(always)]
    pub fn read_optional<T>(
        &self,
        index: usize,
        align: usize,
        array: Option<&dyn AsDeviceView<T>>,
    ) -> Result<Span, LaunchError> {
        match array {
            Some(array) => self.read(index, align, array),
            None => Ok(Span::ABSENT),
        }
    }

    #[inline(always)]
    fn span<T>(
        &self,
        index: usize,
        align: usize,
        view: View<'_>,
        writes: bool,
        cure: impl FnOnce() -> &'static str,
    ) -> Result<Span, LaunchError> {
        let mut elsewhere = false;
        self.described.set(self.described.get() + 1);
        if self.is_settled(&view, writes) {
            self.settled.set(self.settled.get() + 1);
        } else if view.tracker() != self.stream.tracker() {
            self.mixed.set(true);
            elsewhere = match view.place() {
                Place::Context { context, .. } => differ(context, self.stream.context()),
                Place::Device(device) => device != self.stream.device(),
                Place::Everywhere => self.stream.device() == FOREIGN,
                _ => true,
            };
        }
        let pointer = view.pointer();
        if elsewhere || !view.is_contiguous() || pointer & (align as u64 - 1) != 0 {
            let unfit = Unfit {
                pointer,
                layout: view.layout(),
                place: view.place(),
                elsewhere,
                stream: self.stream.device(),
                align,
                cure: cure(),
            };
            return Err(unfit.explain(self.kernel, index));
        }
        if !view.is_exclusive() {
            self.unguarded.set(true);
        }
        Ok(Span {
            pointer,
            len: view.len(),
            element: size_of::<T>(),
            exclusive: view.is_exclusive(),
        })
    }

    /// Refuses an array that the kernel cannot reach, or whose first element is not aligned.
    pub(crate) fn check_place(
        &self,
        index: usize,
        align: usize,
        view: &View<'_>,
    ) -> Result<(), LaunchError> {
        let first = View::new(view.pointer(), 1, view.place()).tracked_by(view.tracker());
        self.span::<u8>(index, align, first, false, || "").map(drop)
    }

    /// All that lies between the first and the last address of an array that is not contiguous:
    /// room for `len` elements.
    pub(crate) fn reaching<T>(&self, first: u64, len: usize, view: &View<'_>) -> Span {
        if !view.is_exclusive() {
            self.unguarded.set(true);
        }
        Span {
            pointer: first,
            len,
            element: size_of::<T>(),
            exclusive: view.is_exclusive(),
        }
    }

    pub(crate) fn read_only(&self, index: usize) -> LaunchError {
        read_only(self.kernel, index)
    }

    pub(crate) fn view_error(&self, index: usize, error: ViewError) -> LaunchError {
        view_error(self.kernel, index, error)
    }

    /// Whether the launching stream may use all arrays without more ado.
    #[inline(always)]
    fn all_settled(&self) -> bool {
        self.settled.get() == self.described.get()
    }

    /// Whether the launching stream, in the array's context, may use it without more ado.
    #[inline(always)]
    fn is_settled(&self, view: &View<'_>, writes: bool) -> bool {
        let stream = self.stream.raw();
        let settled = if writes {
            view.may_write_on(stream)
        } else {
            view.may_read_on(stream)
        };
        settled
            && match view.place() {
                Place::Context { context, .. } => context == self.stream.context(),
                Place::Device(device) => {
                    let stream = self.stream.native::<CudaStream>();
                    // The default streams of other contexts have the same handles.
                    device == self.stream.device()
                        && stream.is_some_and(|stream| stream.context().is_primary())
                }
                _ => false,
            }
    }

    /// Refuses arrays that overlap where the kernel writes to one of them; each with its
    /// parameter, and whether the kernel writes it.
    ///
    /// Arrays that Rust's borrow rules guard cannot overlap each other.
    #[inline(always)]
    pub fn disjoint<const N: usize>(
        &self,
        arrays: &[(usize, Span, bool); N],
    ) -> Result<(), LaunchError> {
        // A few arrays are compared here, in registers; who overlaps is told elsewhere.
        let any = || {
            if N > 4 {
                any_overlap_of_many(arrays)
            } else {
                any_overlap(arrays)
            }
        };
        if self.unguarded.get() && any() {
            check_disjoint(self.kernel, arrays)
        } else {
            Ok(())
        }
    }

    /// The grid, for contracts.
    #[must_use]
    #[inline(always)]
    pub fn grid(&self) -> Extents {
        self.dims.grid.into()
    }

    /// The block, for contracts.
    #[must_use]
    #[inline(always)]
    pub fn block(&self) -> Extents {
        self.dims.block.into()
    }

    /// The dynamic shared memory of a block in bytes, for contracts.
    #[must_use]
    #[inline(always)]
    pub fn shared_mem_bytes(&self) -> Int {
        self.dims.shared_mem_bytes.into()
    }

    /// The error of a contract that does not hold, with what its names stand for.
    #[must_use]
    #[inline(always)]
    pub fn requirement(&self, index: usize, values: &[(&str, &dyn fmt::Display)]) -> LaunchError {
        unmet(self.kernel, index, values)
    }

    /// Makes the stream wait for the last write of an array that the kernel reads.
    #[inline(always)]
    pub fn acquire<'v, T, V: AsDeviceView<T> + ?Sized>(
        &self,
        index: usize,
        array: &'v V,
    ) -> Result<Guard<'v>, LaunchError>
    where
        'a: 'v,
    {
        match array.acquire(self.stream) {
            Ok(guard) => Ok(guard),
            Err(error) => Err(view_error(self.kernel, index, error)),
        }
    }

    /// Makes the stream wait for the last uses of an array that the kernel writes.
    #[inline(always)]
    pub fn acquire_mut<'v, T, V: AsDeviceViewMut<T> + ?Sized>(
        &self,
        index: usize,
        array: &'v mut V,
    ) -> Result<Guard<'v>, LaunchError>
    where
        'a: 'v,
    {
        match array.acquire_mut(self.stream) {
            Ok(guard) => Ok(guard),
            Err(error) => Err(view_error(self.kernel, index, error)),
        }
    }

    /// Makes the stream wait for the last write of an array, if there is one.
    #[inline(always)]
    pub fn acquire_optional<'v, T>(
        &self,
        index: usize,
        array: Option<&'v dyn AsDeviceView<T>>,
    ) -> Result<Guard<'v>, LaunchError>
    where
        'a: 'v,
    {
        match array {
            Some(array) => self.acquire(index, array),
            None => Ok(Guard::none()),
        }
    }

    /// Enqueues the kernel.
    ///
    /// # Safety
    ///
    /// `params` must hold every parameter as declared, its arrays acquired through this call. The
    /// declaration must be true, and where it is not `safe`, the caller of the kernel must have
    /// vouched for the rest.
    #[inline(always)]
    pub unsafe fn enqueue<const SIZE: usize>(
        &self,
        params: &mut Params<SIZE>,
    ) -> Result<(), LaunchError> {
        let stream: CUstream = self.stream.raw().cast();
        let _range = trace::launch(self.kernel, self.dims, stream);
        loop {
            let code = match self.attributes {
                // SAFETY: the kernel was loaded in, or compared with, the context of the stream,
                // which is borrowed; the caller vouches for the arguments.
                None => unsafe { params.launch(self.kernel, self.dims, stream) },
                // SAFETY: as above; events were compared with that context.
                Some(attributes) => unsafe {
                    params.launch_with(self.kernel, self.dims, stream, attributes)
                },
            };
            match code.result() {
                Ok(()) => break,
                Err(code) => {
                    let dims = self.dims.numbers();
                    try_again(
                        self.kernel,
                        self.stream.native(),
                        code,
                        dims,
                        self.attributes,
                    )?;
                }
            }
        }
        if !self.goes_on && self.kernel.synchronous {
            let (dims, attributes) = (self.dims.numbers(), self.attributes);
            let (kernel, arrays) = (self.kernel, self.arrays);
            // SAFETY: the stream is borrowed and its context current.
            unsafe { synchronise(kernel, stream, dims, params.bytes(), arrays, attributes) }?;
        }
        Ok(())
    }

    /// Begins the end: each guard must be finished now that the kernel is enqueued.
    #[inline(always)]
    pub fn finish(&self) -> Finish<'a> {
        let stream = self.stream.raw().cast();
        let mut error = None;
        if self.waits_late.get() && !self.stream.native().is_some_and(is_alone) {
            // Another thread made a second stream since the launch began.
            // SAFETY: the stream is borrowed and its context current.
            error = unsafe { wait(self.kernel, stream) }.err();
        }
        Finish {
            kernel: self.kernel,
            stream,
            error: ManuallyDrop::new(error),
        }
    }
}

/// Finishes the guards of a launch. All of them, whatever happens: each stands for another array.
#[derive(Debug)]
#[must_use]
pub struct Finish<'a> {
    kernel: &'a Loaded,
    /// Borrowed for `'a`.
    stream: CUstream,
    /// Not dropped where a guard panics, so that it need not exist in memory.
    error: ManuallyDrop<Option<LaunchError>>,
}

impl Finish<'_> {
    /// Records the kernel's use of one array.
    #[inline(always)]
    pub fn guard(&mut self, index: usize, guard: Guard<'_>) {
        if let Err(error) = guard.finish() {
            // SAFETY: the stream is borrowed and its context current.
            let error = unsafe { not_recorded(self.kernel, self.stream, index, error) };
            self.error.get_or_insert(error);
        }
    }

    /// The first error.
    #[inline(always)]
    pub fn result(self) -> Result<(), LaunchError> {
        match ManuallyDrop::into_inner(self.error) {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// Whether two contexts differ. Cold, so that nothing is prepared for it: those of an array and a
/// stream that share a tracker need not be compared.
#[cold]
#[inline(never)]
fn differ(one: *mut c_void, other: *mut c_void) -> bool {
    one != other
}

#[cold]
#[inline(never)]
fn error(kernel: &Loaded, kind: LaunchErrorKind) -> LaunchError {
    LaunchError::new(kernel.declaration.kernel, kind)
}

#[cold]
#[inline(never)]
fn not_loaded(kernel: &KernelCell, safe: bool, error: LoadError) -> LaunchError {
    let name = kernel.declaration().kernel;
    match error.kind() {
        // Loaded, it would be refused all the same.
        LoadErrorKind::Capturing { .. } if safe => {
            LaunchError::new(name, LaunchErrorKind::Capturing)
        }
        _ => LaunchError::of_load(name, error),
    }
}

/// Makes the stream's context current; false if it is already.
#[inline(never)]
fn rebind(kernel: &Loaded, stream: &CudaStream) -> Result<bool, LaunchError> {
    let context = stream.context();
    let mut current = ptr::null_mut();
    // SAFETY: `current` takes the answer.
    let code = unsafe { (kernel.driver.ctx_get_current)(&raw mut current) };
    if code.result().is_ok() && current == context.cu_ctx() {
        return Ok(false);
    }
    match context.bind_to_thread() {
        Ok(()) => Ok(true),
        Err(source) => {
            let ordinal = context.ordinal();
            let unbound = LoadErrorKind::Context { ordinal, source };
            Err(error(kernel, LaunchErrorKind::Load(unbound.into())))
        }
    }
}

/// After a launch that the driver refused: makes the stream's context current, if another was, for
/// one more try.
#[cold]
#[inline(never)]
fn try_again(
    kernel: &Loaded,
    stream: Option<&CudaStream>,
    code: DriverCode,
    dims: [u32; 7],
    attributes: Option<&Attributes<'_>>,
) -> Result<(), LaunchError> {
    match stream {
        Some(stream) if rebind(kernel, stream)? => Ok(()),
        _ => Err(not_launched(kernel, code, dims, attributes)),
    }
}

/// Refuses a stream that is being captured, or that the driver does not answer for though its
/// context is current.
#[cold]
#[inline(never)]
fn refuse_capture(kernel: &Loaded, stream: &CudaStream) -> Result<(), LaunchError> {
    rebind(kernel, stream)?;
    let mut capturing = 0;
    // SAFETY: the stream is borrowed, its context current; `capturing` takes the answer.
    let code =
        unsafe { (kernel.driver.stream_is_capturing)(stream.cu_stream(), &raw mut capturing) };
    if let Err(code) = code.result() {
        return Err(refused(kernel, "cuStreamIsCapturing", code, String::new()));
    }
    if capturing != 0 {
        return Err(error(kernel, LaunchErrorKind::Capturing));
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn refused(
    kernel: &Loaded,
    call: &'static str,
    code: DriverCode,
    explanation: String,
) -> LaunchError {
    let kind = if code.breaks_context() {
        LaunchErrorKind::Broken(code)
    } else {
        LaunchErrorKind::Driver {
            call,
            code,
            explanation,
        }
    };
    error(kernel, kind)
}

#[cold]
#[inline(never)]
fn not_launched(
    kernel: &Loaded,
    code: DriverCode,
    dims: [u32; 7],
    attributes: Option<&Attributes<'_>>,
) -> LaunchError {
    let attributes = attributes.filter(|attributes| attributes.any());
    let call = match attributes {
        Some(_) => "cuLaunchKernelEx",
        None => "cuLaunchKernel",
    };
    let explanation = kernel.explain(Dims::from_numbers(dims), attributes);
    refused(kernel, call, code, explanation)
}

#[cold]
#[inline(never)]
fn argument(kernel: &Loaded, index: usize, reason: ArgumentError) -> LaunchError {
    let param = &kernel.declaration.params[index];
    let kind = LaunchErrorKind::Argument {
        index,
        name: param.name,
        ty: param.ty,
        error: reason,
    };
    error(kernel, kind)
}

#[cold]
#[inline(never)]
fn view_error(kernel: &Loaded, index: usize, error: ViewError) -> LaunchError {
    argument(kernel, index, ArgumentError::View(error))
}

#[cold]
#[inline(never)]
fn read_only(kernel: &Loaded, index: usize) -> LaunchError {
    view_error(kernel, index, ViewErrorKind::ReadOnly.into())
}

/// An array that cannot be an argument, in the parts that the view of it need not be kept for.
struct Unfit<'v> {
    pointer: u64,
    layout: Layout<'v>,
    place: Place,
    elsewhere: bool,
    /// The device of the stream.
    stream: i32,
    align: usize,
    /// What makes the array contiguous, in its library's words.
    cure: &'static str,
}

impl Unfit<'_> {
    #[cold]
    #[inline(never)]
    fn explain(self, kernel: &Loaded, index: usize) -> LaunchError {
        let stream = self.stream;
        let reason = match (self.place, self.layout) {
            _ if self.elsewhere && stream == FOREIGN => ArgumentError::View(ViewError::other(
                "the array is not one of the graph; give it to the graph by `read`, `write` or `own`, and pass what that returns",
            )),
            (Place::Context { device, .. }, _) if self.elsewhere && device == stream => {
                ArgumentError::OtherContext { device }
            }
            (Place::Context { device: array, .. } | Place::Device(array), _) if self.elsewhere => {
                ArgumentError::OtherDevice { array, stream }
            }
            _ if self.elsewhere => ArgumentError::View(ViewError::other(
                "the array is in a place that is not known",
            )),
            _ if self.pointer & (self.align as u64 - 1) != 0 => ArgumentError::Misaligned {
                found: 1 << self.pointer.trailing_zeros(),
                needed: self.align,
            },
            (_, Layout::Strided { shape, strides }) => {
                let kind = ViewErrorKind::NotContiguous {
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                    cure: self.cure,
                };
                ArgumentError::View(kind.into())
            }
            _ => ArgumentError::View(ViewError::other("the array's layout is not known")),
        };
        argument(kernel, index, reason)
    }
}

/// Whether any two arrays overlap of which one is written.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "who is written is known to the compiler, who would make memory of the arrays for a lazy operator"
)]
#[inline(always)]
fn any_overlap(arrays: &[(usize, Span, bool)]) -> bool {
    arrays
        .iter()
        .enumerate()
        .any(|(position, (_, one, written))| {
            let others = &arrays[..position];
            others
                .iter()
                .any(|(_, other, other_written)| (*written | *other_written) && one.overlaps(other))
        })
}

/// The same out of line: the written arrays, which are few, are compared with the others.
#[inline(never)]
fn any_overlap_of_many(arrays: &[(usize, Span, bool)]) -> bool {
    let written = arrays.iter().filter(|(_, _, written)| *written);
    written.into_iter().any(|(index, one, _)| {
        arrays
            .iter()
            .any(|(other_index, other, _)| one.overlaps(other) && other_index != index)
    })
}

/// Tells which arrays overlap that may not, where some do.
#[cold]
#[inline(never)]
fn check_disjoint(kernel: &Loaded, arrays: &[(usize, Span, bool)]) -> Result<(), LaunchError> {
    let may_alias = kernel.declaration.may_alias;
    for (position, &(index, array, written)) in arrays.iter().enumerate() {
        for &(other_index, other, other_written) in &arrays[..position] {
            if (written || other_written)
                && !(array.exclusive && other.exclusive)
                && array.overlaps(&other)
                && !may_alias.contains(&(other_index, index))
            {
                let other = kernel.declaration.params[other_index].name;
                let reason = ArgumentError::Overlap { other, other_index };
                return Err(argument(kernel, index, reason));
            }
        }
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn unmet(kernel: &Loaded, index: usize, values: &[(&str, &dyn fmt::Display)]) -> LaunchError {
    let mut text = String::new();
    for (position, (name, value)) in values.iter().enumerate() {
        let separator = match position {
            0 => "",
            _ if position + 1 == values.len() => " and ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{name} is {value}");
    }
    if values.is_empty() {
        text += "it does not hold";
    }
    let kind = LaunchErrorKind::Requirement {
        requirement: kernel.declaration.requires[index],
        values: text,
    };
    error(kernel, kind)
}

/// Waits for the kernel, and tells all that is known of it if it failed.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
unsafe fn synchronise(
    kernel: &Loaded,
    stream: CUstream,
    dims: [u32; 7],
    params: &[u8],
    arrays: Option<&Arrays>,
    attributes: Option<&Attributes<'_>>,
) -> Result<(), LaunchError> {
    let mut capturing = 0;
    // SAFETY: the caller vouches for the stream and the context; `capturing` takes the answer.
    let code = unsafe { (kernel.driver.stream_is_capturing)(stream, &raw mut capturing) };
    if code.result().is_ok() && capturing != 0 {
        // What is captured does not run now, and a wait would end the capture.
        return Ok(());
    }
    // SAFETY: the caller vouches for the stream and the context.
    let code = unsafe { (kernel.driver.stream_synchronize)(stream) };
    let Err(code) = code.result() else {
        return Ok(());
    };
    let declaration = kernel.declaration;
    let nothing = Arrays::default();
    let arrays = arrays.unwrap_or(&nothing);
    let launch = LaunchDescription::new(kernel, dims, stream, params, arrays, attributes);
    let kind = LaunchErrorKind::Fault {
        file: declaration.file,
        line: declaration.line,
        code,
        launch: Box::new(launch),
    };
    Err(error(kernel, kind))
}

/// Waits for the kernel.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
unsafe fn wait(kernel: &Loaded, stream: CUstream) -> Result<(), LaunchError> {
    // SAFETY: the caller vouches for the stream and the context.
    let code = unsafe { (kernel.driver.stream_synchronize)(stream) };
    code.result()
        .map_err(|code| refused(kernel, "cuStreamSynchronize", code, String::new()))
}

/// Waits for the kernel, since nobody else would: its use of an array is not recorded.
///
/// # Safety
///
/// The stream must live, and its context be current.
#[cold]
#[inline(never)]
unsafe fn not_recorded(
    kernel: &Loaded,
    stream: CUstream,
    index: usize,
    reason: ViewError,
) -> LaunchError {
    // If that fails too, the context is broken, nothing runs in it any more, and its memory is
    // gone with it.
    // SAFETY: the caller vouches for the stream and the context.
    let _ = unsafe { (kernel.driver.stream_synchronize)(stream) };
    let kind = LaunchErrorKind::Finish {
        index,
        name: kernel.declaration.params[index].name,
        error: reason,
    };
    error(kernel, kind)
}

/// An array that has been described and checked: contiguous elements at an address.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pointer: u64,
    len: usize,
    /// The size of an element in bytes; 0 for an array that was left out.
    element: usize,
    exclusive: bool,
}

impl Span {
    /// What stands for an array that was left out: the null pointer, and no elements.
    const ABSENT: Span = Span {
        pointer: 0,
        len: 0,
        element: 0,
        exclusive: true,
    };

    #[inline(always)]
    pub(crate) fn pointer(&self) -> u64 {
        self.pointer
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn is_absent(&self) -> bool {
        self.element == 0
    }

    #[inline(always)]
    fn overlaps(&self, other: &Span) -> bool {
        self.pointer < other.end() && other.pointer < self.end() && self.len > 0 && other.len > 0
    }

    #[inline(always)]
    fn end(&self) -> u64 {
        let bytes = self.len.saturating_mul(self.element) as u64;
        self.pointer.saturating_add(bytes)
    }
}
