//! The launch path: describe, check, acquire, pack, one driver call, finish.
//!
//! The steps are called by the code that `#[kernel]` generates, in that order, once for each
//! argument. On success nothing here allocates, locks or looks up; the driver is asked for the
//! current context and, for safe kernels, whether the stream is being captured.

#![expect(
    clippy::missing_errors_doc,
    reason = "called by generated code only; users read of the errors at the kernel's function"
)]

use std::{
    fmt::{self, Write},
    ptr,
};

use cudarc::driver::{CudaStream, sys::CUstream};
use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, Guard, Layout, Place, StreamRef, View, ViewError, ViewErrorKind,
};

use crate::{
    contract::{Extents, Int},
    driver::DriverCode,
    error::{ArgumentError, LaunchError, LaunchErrorKind, LoadErrorKind},
    kernel::{Arguments, Declared},
    launch::{Dims, Launch},
    load::Loaded,
    params::Params,
};

/// Launches through the kernel that is loaded for the stream's context.
#[inline(always)]
pub fn launch<A: Arguments>(
    arguments: A,
    stream: &CudaStream,
    launch: Launch,
) -> Result<(), LaunchError> {
    let kernel = A::Declared::cell();
    let kernel = match kernel.find(stream) {
        Ok(loaded) => loaded,
        Err(error) => {
            return Err(LaunchError::of_load(kernel.declaration().kernel, error));
        }
    };
    let call = Call::begin(kernel, stream, launch)?;
    arguments.run(&call)
}

/// One launch, while its arguments are described, checked, acquired and released.
#[derive(Debug)]
pub struct Call<'a> {
    kernel: &'a Loaded,
    stream: StreamRef<'a>,
    dims: Dims,
}

impl<'a> Call<'a> {
    /// Makes the stream's context current, and checks all that does not depend on arguments.
    #[inline(always)]
    pub(crate) fn begin(
        kernel: &'a Loaded,
        stream: &'a CudaStream,
        launch: Launch,
    ) -> Result<Call<'a>, LaunchError> {
        let context = stream.context();
        let failed = |kind| Err(LaunchError::new(kernel.declaration.kernel, kind));
        if let Err(earlier) = context.check_err() {
            return failed(LaunchErrorKind::Earlier(earlier));
        }
        let mut current = ptr::null_mut();
        // SAFETY: `current` takes the answer.
        let code = unsafe { (kernel.driver.ctx_get_current)(&raw mut current) };
        if (code.result().is_err() || current != context.cu_ctx())
            && let Err(source) = context.bind_to_thread()
        {
            let ordinal = context.ordinal();
            let error = LoadErrorKind::Context { ordinal, source }.into();
            return failed(LaunchErrorKind::Load(error));
        }
        if kernel.declaration.safe {
            let mut capturing = 0;
            // SAFETY: the stream is borrowed, its context current; `capturing` takes the answer.
            let code = unsafe {
                (kernel.driver.stream_is_capturing)(stream.cu_stream(), &raw mut capturing)
            };
            if let Err(code) = code.result() {
                let explanation = String::new();
                return failed(driver_error("cuStreamIsCapturing", code, explanation));
            }
            if capturing != 0 {
                return failed(LaunchErrorKind::Capturing);
            }
        }
        match Dims::resolve(launch, kernel) {
            Ok(dims) => Ok(Call {
                kernel,
                stream: StreamRef::from(stream),
                dims,
            }),
            Err(error) => failed(LaunchErrorKind::Geometry(error)),
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
            Ok(view) => self.span::<T>(index, align, &view),
            Err(error) => Err(self.argument(index, ArgumentError::View(error))),
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
            Ok(view) if view.is_read_only() => {
                Err(self.argument(index, ArgumentError::View(ViewErrorKind::ReadOnly.into())))
            }
            Ok(view) => self.span::<T>(index, align, &view),
            Err(error) => Err(self.argument(index, ArgumentError::View(error))),
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
    fn span<T>(&self, index: usize, align: usize, view: &View<'_>) -> Result<Span, LaunchError> {
        let elsewhere = match view.place() {
            Place::Context { context, .. } => context != self.stream.context(),
            Place::Device(device) => device != self.stream.device(),
            Place::Everywhere => false,
            _ => true,
        };
        let pointer = view.pointer();
        if elsewhere || !view.is_contiguous() || pointer & (align as u64 - 1) != 0 {
            return Err(self.refuse(index, align, view, elsewhere));
        }
        Ok(Span {
            pointer,
            len: view.len(),
            bytes: view.len().saturating_mul(size_of::<T>()) as u64,
            exclusive: view.is_exclusive(),
        })
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, index: usize, align: usize, view: &View<'_>, elsewhere: bool) -> LaunchError {
        let stream = self.stream.device();
        let error = match (view.place(), view.layout()) {
            (Place::Context { device, .. }, _) if elsewhere && device == stream => {
                ArgumentError::OtherContext { device }
            }
            (Place::Context { device: array, .. } | Place::Device(array), _) if elsewhere => {
                ArgumentError::OtherDevice { array, stream }
            }
            (_, Layout::Strided { shape, strides }) if !view.is_contiguous() => {
                let kind = ViewErrorKind::NotContiguous {
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                };
                ArgumentError::View(kind.into())
            }
            _ if elsewhere => ArgumentError::View(ViewError::other(
                "the array is in a place that is not known",
            )),
            _ => ArgumentError::Misaligned {
                found: 1 << view.pointer().trailing_zeros(),
                needed: align,
            },
        };
        self.argument(index, error)
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
        if arrays.iter().all(|(_, array, _)| array.exclusive) {
            return Ok(());
        }
        self.check_disjoint(arrays)
    }

    #[inline(never)]
    fn check_disjoint(&self, arrays: &[(usize, Span, bool)]) -> Result<(), LaunchError> {
        for (position, &(index, array, written)) in arrays.iter().enumerate() {
            for &(other_index, other, other_written) in &arrays[..position] {
                if (written || other_written)
                    && !(array.exclusive && other.exclusive)
                    && array.overlaps(&other)
                    && !self
                        .kernel
                        .declaration
                        .may_alias
                        .contains(&(other_index, index))
                {
                    let other = self.kernel.declaration.params[other_index].name;
                    let error = ArgumentError::Overlap { other, other_index };
                    return Err(self.argument(index, error));
                }
            }
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
    #[cold]
    #[inline(never)]
    pub fn requirement(&self, index: usize, values: &[(&str, &dyn fmt::Display)]) -> LaunchError {
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
        let requirement = self.kernel.declaration.requires[index];
        self.error(LaunchErrorKind::Requirement {
            requirement,
            values: text,
        })
    }

    /// Whether there is nothing to launch.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty()
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
        array
            .acquire(self.stream)
            .map_err(|e| self.argument(index, ArgumentError::View(e)))
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
        array
            .acquire_mut(self.stream)
            .map_err(|e| self.argument(index, ArgumentError::View(e)))
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
        let Dims {
            grid,
            block,
            shared_mem_bytes,
        } = self.dims;
        let grid = [grid.x, grid.y, grid.z];
        let block = [block.x, block.y, block.z];
        let stream: CUstream = self.stream.raw().cast();
        // SAFETY: `begin` made the kernel's context current and found it to be the stream's,
        // which is borrowed; the caller vouches for the arguments.
        let code = unsafe { params.launch(self.kernel, grid, block, shared_mem_bytes, stream) };
        if let Err(code) = code.result() {
            let explanation = self.kernel.explain();
            return Err(self.error(driver_error("cuLaunchKernel", code, explanation)));
        }
        if self.kernel.synchronous {
            return self.synchronise(params.bytes());
        }
        Ok(())
    }

    /// Waits for the kernel, and tells all that is known of it if it failed.
    #[cold]
    #[inline(never)]
    fn synchronise(&self, params: &[u8]) -> Result<(), LaunchError> {
        // SAFETY: the stream is borrowed and its context current.
        let code = unsafe { (self.kernel.driver.stream_synchronize)(self.stream.raw().cast()) };
        let Err(code) = code.result() else {
            return Ok(());
        };
        let declaration = self.kernel.declaration;
        let Dims {
            grid,
            block,
            shared_mem_bytes,
        } = self.dims;
        Err(self.error(LaunchErrorKind::Fault {
            file: declaration.file,
            line: declaration.line,
            code,
            grid: [grid.x, grid.y, grid.z],
            block: [block.x, block.y, block.z],
            shared_mem_bytes,
            arguments: declaration.describe_arguments(params),
        }))
    }

    /// Begins the end: each guard must be finished now that the kernel is enqueued.
    #[inline(always)]
    pub fn finish(&self) -> Finish<'_, 'a> {
        Finish {
            call: self,
            error: None,
        }
    }

    #[cold]
    #[inline(never)]
    fn argument(&self, index: usize, error: ArgumentError) -> LaunchError {
        let param = &self.kernel.declaration.params[index];
        self.error(LaunchErrorKind::Argument {
            index,
            name: param.name,
            ty: param.ty,
            error,
        })
    }

    #[cold]
    fn error(&self, kind: LaunchErrorKind) -> LaunchError {
        LaunchError::new(self.kernel.declaration.kernel, kind)
    }
}

#[cold]
fn driver_error(call: &'static str, code: DriverCode, explanation: String) -> LaunchErrorKind {
    if code.breaks_context() {
        return LaunchErrorKind::Broken(code);
    }
    LaunchErrorKind::Driver {
        call,
        code,
        explanation,
    }
}

/// Finishes the guards of a launch. All of them, whatever happens: each stands for another array.
#[derive(Debug)]
#[must_use]
pub struct Finish<'c, 'a> {
    call: &'c Call<'a>,
    error: Option<LaunchError>,
}

impl Finish<'_, '_> {
    /// Records the kernel's use of one array.
    #[inline(always)]
    pub fn guard(&mut self, index: usize, guard: Guard<'_>) {
        if let Err(error) = guard.finish() {
            self.failed(index, error);
        }
    }

    /// The first error.
    #[inline(always)]
    pub fn result(self) -> Result<(), LaunchError> {
        match self.error {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    #[cold]
    #[inline(never)]
    fn failed(&mut self, index: usize, error: ViewError) {
        // The use is not recorded, so nobody would wait for it: wait here. If that fails too, the
        // context is broken, nothing runs in it any more, and its memory is gone with it.
        let stream = self.call.stream.raw().cast();
        // SAFETY: the stream is borrowed and its context current.
        let _ = unsafe { (self.call.kernel.driver.stream_synchronize)(stream) };
        let name = self.call.kernel.declaration.params[index].name;
        let kind = LaunchErrorKind::Finish { index, name, error };
        self.error.get_or_insert_with(|| self.call.error(kind));
    }
}

/// An array that has been described and checked: contiguous elements at an address.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pointer: u64,
    len: usize,
    bytes: u64,
    exclusive: bool,
}

impl Span {
    /// What stands for an array that was left out: the null pointer, and no elements.
    const ABSENT: Span = Span {
        pointer: 0,
        len: usize::MAX,
        bytes: 0,
        exclusive: true,
    };

    #[inline(always)]
    pub(crate) fn pointer(&self) -> u64 {
        self.pointer
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        if self.is_absent() { 0 } else { self.len }
    }

    #[inline(always)]
    pub(crate) fn is_absent(&self) -> bool {
        self.len == usize::MAX
    }

    fn overlaps(&self, other: &Span) -> bool {
        self.pointer < other.pointer.saturating_add(other.bytes)
            && other.pointer < self.pointer.saturating_add(self.bytes)
            && self.bytes > 0
            && other.bytes > 0
    }
}
