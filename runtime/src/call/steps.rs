//! The steps that are taken for each argument of a launch, and the one driver call.

use std::{cell::Cell, fmt, mem::ManuallyDrop, sync::Arc};

use cudarc::driver::{CudaStream, sys::CUstream};
use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, Guard, Place, StreamRef, Tracking, View, ViewError,
};

use super::{
    finish::{Finish, synchronise, wait},
    overlap::{Span, any_overlap, any_overlap_of_many, check_disjoint},
    purpose::{Launching, Purpose},
    refusal::{Doubtful, not_launched, other_module, read_only, unmet, view_error},
    stream::{is_alone, is_default, rebind},
};
use crate::{
    attributes::Attributes,
    contract::{Extents, Int},
    describe::Arrays,
    error::LaunchError,
    function::DeviceFn,
    graph::{Failed, Replayed},
    launch::Dims,
    load::Loaded,
    params::Params,
    trace,
};

/// One launch, while its arguments are described, checked, acquired and released.
///
/// No method hands a reference to it to a function that is not inlined: it exists in registers.
#[derive(Debug)]
pub struct Call<'a, P = Launching> {
    kernel: &'a Loaded,
    stream: StreamRef<'a>,
    /// What the stream's tracker was asked.
    tracking: Tracking<'a>,
    dims: Dims,
    /// What the launch asks for besides.
    pub(super) attributes: Option<&'a Attributes<'a>>,
    /// The graph that is launched in the kernel's place.
    pub(super) replayed: Option<&'a Replayed>,
    /// How many arrays were described that Rust's borrow rules do not guard.
    unguarded: Cell<usize>,
    /// How many arrays were described.
    described: Cell<usize>,
    /// How many of them are settled on the stream.
    settled: Cell<usize>,
    /// Whether one of them is not, and its tracker is not the stream's either.
    pub(super) mixed: Cell<bool>,
    /// Whether the launch is made alone, for as long as cudarc orders nothing.
    pub(super) waits_late: Cell<bool>,
    /// Whether it is known not to be waited for (`GRIDCALL_SYNC=1`).
    pub(super) goes_on: bool,
    /// What is known of the arrays, in case that it is and fails.
    pub(super) arrays: Option<&'a Arrays>,
    purpose: P,
}

impl<'a> Call<'a> {
    #[inline(always)]
    pub(super) fn new(kernel: &'a Loaded, stream: StreamRef<'a>, dims: Dims) -> Call<'a> {
        Call::of(kernel, stream, dims, Launching)
    }
}

impl<'a, P: Purpose> Call<'a, P> {
    #[inline(always)]
    pub(super) fn of(kernel: &'a Loaded, stream: StreamRef<'a>, dims: Dims, purpose: P) -> Self {
        Call {
            kernel,
            stream,
            tracking: Tracking::of(stream),
            dims,
            attributes: None,
            replayed: None,
            unguarded: Cell::new(0),
            described: Cell::new(0),
            settled: Cell::new(0),
            mixed: Cell::new(false),
            waits_late: Cell::new(false),
            goes_on: false,
            arrays: None,
            purpose,
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
    ) -> Result<Span, P::Stop> {
        match array.describe_tracked(&self.tracking) {
            Ok(view) => self.span::<T>(index, align, view, false, || array.make_contiguous()),
            Err(error) => Err(view_error(self.kernel, index, error).into()),
        }
    }

    /// Describes an array that the kernel writes, and that its owner lets be written.
    #[inline(always)]
    pub fn write<T, V: AsDeviceViewMut<T> + ?Sized>(
        &self,
        index: usize,
        align: usize,
        array: &mut V,
    ) -> Result<Span, P::Stop> {
        match array.describe_mut_tracked(&self.tracking) {
            Ok(view) if view.is_read_only() => Err(read_only(self.kernel, index).into()),
            Ok(view) => self.span::<T>(index, align, view, true, || array.make_contiguous_mut()),
            Err(error) => Err(view_error(self.kernel, index, error).into()),
        }
    }

    /// Describes an array that may be left out.
    #[inline(always)]
    pub fn read_optional<T>(
        &self,
        index: usize,
        align: usize,
        array: Option<&dyn AsDeviceView<T>>,
    ) -> Result<Span, P::Stop> {
        match array {
            // Not handed what is in registers.
            Some(array) => match array.describe() {
                Ok(view) => self.span::<T>(index, align, view, false, || array.make_contiguous()),
                Err(error) => Err(view_error(self.kernel, index, error).into()),
            },
            None => {
                self.purpose.note(&Span::ABSENT, false)?;
                Ok(Span::ABSENT)
            }
        }
    }

    /// The address of a function of the kernel's module.
    #[inline(always)]
    pub fn function<F>(&self, index: usize, function: &DeviceFn<F>) -> Result<u64, LaunchError> {
        if Arc::ptr_eq(function.module(), self.kernel.module()) {
            Ok(function.address())
        } else {
            let (from, module) = (function.read_from(), function.module());
            Err(other_module(self.kernel, index, from, module))
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
    ) -> Result<Span, P::Stop> {
        let span = Span::new::<T>(view.pointer(), view.len(), &view);
        if !self.purpose.admits(&view, &span)? {
            self.fits(index, align, &view, writes, cure)?;
            self.note(&span, writes)?;
        }
        Ok(span)
    }

    /// Refuses an array that is not contiguous, not in the stream's context, or whose first element is
    /// not aligned to `align` bytes.
    #[inline(always)]
    fn fits(
        &self,
        index: usize,
        align: usize,
        view: &View<'_>,
        writes: bool,
        cure: impl FnOnce() -> &'static str,
    ) -> Result<(), LaunchError> {
        self.described.set(self.described.get() + 1);
        let here = if self.is_settled(view, writes) {
            self.settled.set(self.settled.get() + 1);
            true
        } else if view.tracker() == self.stream.tracker() {
            // What is tracked by the same is in the same context.
            true
        } else {
            self.mixed.set(true);
            false
        };
        let pointer = view.pointer();
        if here && view.is_contiguous() && pointer & (align as u64 - 1) == 0 {
            return Ok(());
        }
        let doubtful = Doubtful {
            pointer,
            layout: view.layout(),
            contiguous: view.is_contiguous(),
            place: view.place(),
            here,
            context: self.stream.context(),
            stream: self.stream.device(),
            align,
            cure: cure(),
        };
        doubtful.check(self.kernel, index)
    }

    /// All that lies between the first and the last address of an array that is not contiguous:
    /// room for `len` elements.
    pub(crate) fn reaching<T>(
        &self,
        first: u64,
        len: usize,
        view: &View<'_>,
        writes: bool,
    ) -> Result<Span, P::Stop> {
        let span = Span::new::<T>(first, len, view);
        self.note(&span, writes)?;
        Ok(span)
    }

    /// Whether memory that begins there was described already, for a node whose arguments are not as before.
    pub(crate) fn has_noted(&self, start: u64) -> bool {
        self.purpose.has_noted(start)
    }

    #[inline(always)]
    fn note(&self, span: &Span, writes: bool) -> Result<(), P::Stop> {
        if self.purpose.note(span, writes)? && !span.exclusive {
            self.unguarded.set(self.unguarded.get() + 1);
        }
        Ok(())
    }

    /// Refuses an array that the kernel cannot reach, or whose first element is not aligned.
    pub(crate) fn check_place(
        &self,
        index: usize,
        align: usize,
        view: &View<'_>,
    ) -> Result<(), LaunchError> {
        let first = View::new(view.pointer(), 1, view.place()).tracked_by(view.tracker());
        self.fits(index, align, &first, false, || "")
    }

    pub(crate) fn read_only(&self, index: usize) -> LaunchError {
        read_only(self.kernel, index)
    }

    pub(crate) fn view_error(&self, index: usize, error: ViewError) -> LaunchError {
        view_error(self.kernel, index, error)
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
        arrays: impl FnOnce() -> [(usize, Span, bool); N],
    ) -> Result<(), P::Stop> {
        if self.unguarded.get() == 0 {
            return Ok(());
        }
        // Only now, so that arrays that are not compared are not put into memory for it.
        let arrays = arrays();
        // A few arrays are compared here, in registers; who overlaps is told elsewhere.
        let any = if N > 4 {
            any_overlap_of_many(&arrays)
        } else {
            any_overlap(&arrays)
        };
        if any {
            check_disjoint(self.kernel, &arrays)?;
        }
        Ok(())
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
    pub fn requirement(&self, index: usize, values: &[(&str, &dyn fmt::Display)]) -> P::Stop {
        unmet(self.kernel, index, values).into()
    }
}

impl<'a> Call<'a> {
    /// Whether the launching stream may use all arrays without more ado.
    #[inline(always)]
    pub(super) fn all_settled(&self) -> bool {
        self.settled.get() == self.described.get()
    }

    /// Whether cudarc neither waits for, nor records, uses of arrays on this stream, which is the
    /// launching one.
    #[inline(always)]
    pub(super) fn is_alone(&self, stream: &CudaStream) -> bool {
        self.tracking
            .is_quiet(self.stream.tracker(), || !is_alone(stream))
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
            let (kernel, dims) = (self.kernel, self.dims);
            let launched = match (self.replayed, self.attributes) {
                // SAFETY: the kernel was loaded in, or compared with, the context of the stream,
                // which is borrowed; the caller vouches for the arguments.
                (None, None) => unsafe { params.launch(kernel, dims, stream) }
                    .result()
                    .map_err(|code| ("cuLaunchKernel", code)),
                (None, Some(attributes)) => {
                    // SAFETY: as above; events were compared with that context.
                    unsafe { params.launch_with(kernel, dims, stream, attributes) }
                        .result()
                        .map_err(|code| (attributes.call(), code))
                }
                (Some(replayed), _) => {
                    // A graph is launched whatever context is current; an argument may have made
                    // another one so.
                    if let Some(stream) = self.stream.native()
                        && (is_default(stream) || !replayed.is_built())
                    {
                        rebind(kernel, stream)?;
                    }
                    // SAFETY: as above; the graph is this kernel's.
                    unsafe { replayed.enqueue(kernel, dims, stream, params.as_mut()) }
                }
            };
            match launched {
                Ok(()) => break,
                Err(failed) => {
                    let (dims, attributes) = (dims.numbers(), self.attributes);
                    try_again(kernel, self.stream.native(), failed, dims, attributes)?;
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

/// After a launch that the driver refused: makes the stream's context current, if another was, for
/// one more try.
#[cold]
#[inline(never)]
fn try_again(
    kernel: &Loaded,
    stream: Option<&CudaStream>,
    failed: Failed,
    dims: [u32; 7],
    attributes: Option<&Attributes<'_>>,
) -> Result<(), LaunchError> {
    match stream {
        Some(stream) if rebind(kernel, stream)? => Ok(()),
        _ => Err(not_launched(kernel, failed, dims, attributes)),
    }
}
