//! One allocation: where it is, who uses it, and how it is freed.
//!
//! It is freed in stream order, after all its users, without the host waiting for them. If one of
//! them cannot be waited for, it is not freed: memory that leaks harms nobody, memory that is
//! freed under a kernel does.

use std::{ffi::c_void, ops::Range, sync::Arc};

use cudarc::driver::{CudaStream, result, sys};
use gridcall_view::{Guard, Place, StreamRef, View, ViewError};

use super::{
    array::Objects,
    limbo,
    order::Access,
    stream::{Held, Launcher, Used, driver_error, is_capturing},
    uses::{Launching, Uses},
};
use crate::{
    current::Current,
    driver::DriverCode,
    error::{BufferError, BufferErrorKind},
    event::Event,
    relaxed::RelaxedCapture,
};

#[derive(Debug)]
pub(super) struct Memory {
    /// Null if there are no bytes, or once it is freed. Of a CUDA array, its handle.
    pointer: u64,
    bytes: usize,
    context: *mut c_void,
    device: i32,
    uses: Uses<Used>,
    /// The stream it was allocated on.
    stream: Arc<CudaStream>,
    /// Where it is freed if several streams use it.
    home: Arc<Held>,
    /// What belongs to it if it is a CUDA array.
    objects: Option<Box<Objects>>,
}

// SAFETY: an address and a handle may be sent anywhere; the driver's functions may be called from
// any thread, and what else is here is `Send` itself.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`; what changes behind a shared reference is atomic or locked.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates in the order of the stream.
    pub(super) fn allocate(stream: &Arc<CudaStream>, bytes: usize) -> Result<Memory, BufferError> {
        limbo::retry();
        let context = stream.context();
        let _current = enter(stream)?;
        // A capture of another stream depends on no memory that comes or goes.
        let _relaxed = RelaxedCapture::enter();
        if is_capturing(stream.cu_stream())? {
            return Err(BufferErrorKind::Capturing.into());
        }
        let failed = |source| {
            if DriverCode::from(source).breaks_context() {
                return BufferErrorKind::Broken(source);
            }
            BufferErrorKind::Allocate {
                bytes,
                device: context.ordinal(),
                source,
            }
        };
        let pointer = if bytes == 0 {
            0
        } else if context.has_async_alloc() {
            // SAFETY: the stream is alive and its context current.
            unsafe { result::malloc_async(stream.cu_stream(), bytes) }.map_err(failed)?
        } else {
            // SAFETY: a context is current.
            unsafe { result::malloc_sync(bytes) }.map_err(failed)?
        };
        // SAFETY: it was allocated a moment ago, as `own` asks, and nobody else has it.
        unsafe { Memory::own(stream, pointer, bytes) }
    }

    /// Takes over memory. If that fails, it leaks.
    ///
    /// # Safety
    ///
    /// `pointer` must be an allocation of `bytes`, owned by the caller, in the stream's context:
    /// from `cuMemAllocAsync` if [`has_async_alloc`](cudarc::driver::CudaContext::has_async_alloc)
    /// says so, else from `cuMemAlloc`; or null, if of none. All uses until now must be in the
    /// order of the stream.
    pub(super) unsafe fn own(
        stream: &Arc<CudaStream>,
        pointer: u64,
        bytes: usize,
    ) -> Result<Memory, BufferError> {
        let context = stream.context();
        let _current = enter(stream)?;
        let (used, handle) = Used::first(stream)?;
        let home = match &used {
            Used::By(held) => held.clone(),
            // The stream may be another when it comes to freeing.
            Used::Until(..) => Held::legacy(context)?,
        };
        Ok(Memory {
            pointer,
            bytes,
            context: context.cu_ctx().cast(),
            device: i32::try_from(context.ordinal()).unwrap_or(i32::MAX),
            uses: Uses::new(used, handle, bytes),
            stream: stream.clone(),
            home,
            objects: None,
        })
    }

    /// Takes over a CUDA array. If that fails, it leaks.
    ///
    /// # Safety
    ///
    /// `array` must be the handle of an array of the stream's context with so many bytes, and it and `objects`,
    /// which are of it, owned by the caller. All uses until now must be in the order of the stream.
    pub(super) unsafe fn own_array(
        stream: &Arc<CudaStream>,
        array: u64,
        bytes: usize,
        objects: Objects,
    ) -> Result<Memory, BufferError> {
        // SAFETY: null is none, and what is put in its place is freed as an array.
        let mut memory = unsafe { Memory::own(stream, 0, bytes) }?;
        memory.objects = Some(Box::new(objects));
        memory.pointer = array;
        Ok(memory)
    }

    /// What belongs to it if it is a CUDA array.
    pub(super) fn objects(&self) -> Option<&Objects> {
        self.objects.as_deref()
    }

    #[inline(always)]
    pub(super) fn pointer(&self) -> u64 {
        self.pointer
    }

    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    pub(super) fn context(&self) -> *mut c_void {
        self.context
    }

    pub(super) fn device(&self) -> i32 {
        self.device
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    pub(super) fn home(&self) -> &Held {
        &self.home
    }

    /// The stream on which the host copies with the fewest waits.
    pub(super) fn nearest_stream(&self) -> Arc<CudaStream> {
        match self.uses.only() {
            Some(Used::By(held)) if held.context() == self.context => held.stream().clone(),
            _ => self.stream.clone(),
        }
    }

    /// `len` elements from an address within on.
    #[inline(always)]
    pub(super) fn view(&self, pointer: u64, len: usize) -> View<'_> {
        let place = Place::Context {
            context: self.context,
            device: self.device,
        };
        View::new(pointer, len, place)
            .exclusive()
            .settled_on(self.uses.open())
    }

    /// Lets a launch read: the first step of every read.
    #[inline(always)]
    pub(super) fn read<'a>(
        &'a self,
        stream: StreamRef<'a>,
        range: Range<usize>,
        split: bool,
    ) -> Result<Guard<'a>, ViewError> {
        if stream.is_alone()
            || self.uses.may_read(stream.raw() as usize) && stream.context() == self.context
        {
            return Ok(Guard::none());
        }
        self.settle(stream.by_field(), range, false, split)
            .map(|event| record(event, stream.raw()))
    }

    /// Lets a launch write.
    #[inline(always)]
    pub(super) fn write<'a>(
        &'a self,
        stream: StreamRef<'a>,
        range: Range<usize>,
        split: bool,
    ) -> Result<Guard<'a>, ViewError> {
        if stream.is_alone()
            || self.uses.is_solo(stream.raw() as usize) && stream.context() == self.context
        {
            return Ok(Guard::none());
        }
        self.settle(stream.by_field(), range, true, split)
            .map(|event| record(event, stream.raw()))
    }

    /// Returns the event to record once the use is enqueued, if there must be one.
    #[cold]
    #[inline(never)]
    fn settle(
        &self,
        stream: StreamRef<'_>,
        range: Range<usize>,
        writes: bool,
        split: bool,
    ) -> Result<Option<Arc<Event>>, ViewError> {
        let access = Access {
            range,
            writes,
            split,
        };
        let launcher = Launcher::new(self, stream)?;
        self.enter(&launcher, &access)?;
        Ok(launcher.event().cloned())
    }

    /// Makes the launcher wait for what it must, and notes its use.
    pub(super) fn enter(
        &self,
        launcher: &Launcher<'_>,
        access: &Access,
    ) -> Result<(), BufferError> {
        self.uses.enter(launcher, access, self.bytes).map(|_| ())
    }

    /// Whether the stream may use it without more ado.
    pub(super) fn is_open_to(&self, stream: StreamRef<'_>, writes: bool) -> bool {
        let handle = stream.raw() as usize;
        let open = self.uses.is_solo(handle) || !writes && self.uses.may_read(handle);
        open && stream.context() == self.context
    }

    /// Before its parts are written apart; nobody may be using it on the host.
    pub(super) fn split(&self) {
        self.uses.split();
    }

    /// Frees it. After an error it is not freed, and never will be unless this is called again.
    pub(super) fn free(&mut self) -> Result<(), BufferError> {
        if self.pointer == 0 {
            return Ok(());
        }
        let target = match self.uses.only() {
            Some(Used::By(held)) if held.context() == self.context => held,
            _ => self.home.clone(),
        };
        let _current = enter(&self.stream)?;
        let _relaxed = RelaxedCapture::enter();
        let raw = self.order_into(&target)?;
        if let Some(objects) = &self.objects {
            // SAFETY: the stream is held and its context current.
            unsafe { result::stream::synchronize(raw) }
                .map_err(|e| driver_error("cuStreamSynchronize", e))?;
            // SAFETY: every use is done, and nobody uses it from now on; they are of one array.
            unsafe { objects.destroy(self.pointer) }?;
        } else if self.stream.context().has_async_alloc() {
            // SAFETY: it was allocated by `cuMemAllocAsync`, and after the waits every use is
            // before this in the order of `raw`. Nobody uses it from now on.
            unsafe { result::free_async(self.pointer, raw) }
                .map_err(|e| driver_error("cuMemFreeAsync", e))?;
        } else {
            // SAFETY: the stream is held and its context current.
            unsafe { result::stream::synchronize(raw) }
                .map_err(|e| driver_error("cuStreamSynchronize", e))?;
            // SAFETY: it was allocated by `cuMemAlloc`, and every use is done.
            unsafe { result::free_sync(self.pointer) }.map_err(|e| driver_error("cuMemFree", e))?;
        }
        self.pointer = 0;
        Ok(())
    }

    /// Lets it leak.
    pub(super) fn forget(&mut self) {
        self.pointer = 0;
    }

    /// Gives it up, every use ordered before what is enqueued on its own stream next.
    pub(super) fn give_up(mut self) -> Result<(Arc<CudaStream>, u64), BufferError> {
        let _current = enter(&self.stream)?;
        let home = self.home.clone();
        self.order_into(&home)?;
        let pointer = self.pointer;
        self.pointer = 0;
        Ok((home.stream().clone(), pointer))
    }

    /// Makes a stream wait for every use, and be the only user.
    fn order_into(&self, held: &Arc<Held>) -> Result<sys::CUstream, BufferError> {
        let raw = held.stream().cu_stream();
        if is_capturing(raw)? {
            return Err(BufferErrorKind::Capturing.into());
        }
        let launcher = Launcher::of(self, held, 0);
        self.enter(&launcher, &Access::whole(self.bytes, true))?;
        debug_assert!(launcher.handle().is_some());
        Ok(raw)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.pointer != 0 {
            limbo::retry();
            self.discard();
        }
    }
}

impl Memory {
    /// Frees it, or keeps it for later, or lets it leak.
    pub(super) fn discard(&mut self) {
        let Err(error) = self.free() else {
            return;
        };
        match error.kind() {
            // The capture will end.
            BufferErrorKind::Capturing | BufferErrorKind::UserCapturing => {
                limbo::park(self.take());
            }
            // The next call in the context tells of the error.
            BufferErrorKind::Driver { source, .. } | BufferErrorKind::Broken(source) => {
                self.stream.context().record_err::<()>(Err(*source));
            }
            _ => {}
        }
        self.pointer = 0;
    }

    /// The same memory, out of a place that is being dropped.
    fn take(&mut self) -> Memory {
        let gone = Uses::new(Used::By(self.home.clone()), None, 0);
        let taken = Memory {
            pointer: self.pointer,
            bytes: self.bytes,
            context: self.context,
            device: self.device,
            uses: std::mem::replace(&mut self.uses, gone),
            stream: self.stream.clone(),
            home: self.home.clone(),
            objects: self.objects.take(),
        };
        self.pointer = 0;
        taken
    }
}

/// The guard that records the event, once for all arrays that share it.
#[inline(always)]
fn record<'a>(event: Option<Arc<Event>>, stream: *mut c_void) -> Guard<'a> {
    let Some(event) = event else {
        return Guard::none();
    };
    Guard::new(move || {
        if event.is_recorded() {
            return Ok(());
        }
        // SAFETY: the array was acquired for this stream, which the guard's lifetime borrows and
        // whose context is current while it finishes, and is the event's.
        unsafe { event.record(stream.cast()) }
            .map_err(|error| ViewError::driver("cuEventRecord", error))
    })
}

/// Makes the stream's context current.
pub(super) fn enter(stream: &CudaStream) -> Result<Current, BufferError> {
    Current::enter(stream.context()).map_err(|e| driver_error("cuCtxSetCurrent", e))
}
