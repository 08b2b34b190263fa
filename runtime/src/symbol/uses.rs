//! The uses of one symbol, and how a stream comes after those that conflict with its own.
//!
//! A use is a point of a stream, by an event that is recorded once the use is enqueued. Nothing
//! keeps a stream or the context alive: a symbol lives as long as its module, which a static
//! holds.

use std::{
    mem, ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use cudarc::driver::{CudaContext, DriverError, result, sys};

use super::{
    error::{SymbolError, SymbolErrorKind},
    gate::{Entered, Gate},
};
use crate::{current::Current, driver::stream_id, relaxed::RelaxedCapture};

/// Orders the uses of a symbol that is written.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// The name in the module.
    pub(super) name: String,
    gate: Arc<Gate>,
    context: Weak<CudaContext>,
    uses: Mutex<Uses>,
    /// How many reads the thread within the gate is about to enqueue, or [`WRITE`].
    pending: AtomicUsize,
}

const WRITE: usize = usize::MAX;

/// A symbol, and whether it is written.
pub(crate) type SymbolUse = (Arc<Tracker>, bool);

#[derive(Debug, Default)]
struct Uses {
    all: Vec<Use>,
    /// For the next use, so that nothing need be made once that is enqueued.
    spare: Option<Event>,
}

#[derive(Debug)]
struct Use {
    stream: u64,
    event: Event,
    writes: bool,
    /// The streams that have been made to wait for it.
    waited: Vec<u64>,
}

impl Tracker {
    /// Of a symbol that nobody has used yet.
    pub(crate) fn new(name: &str, context: &Arc<CudaContext>) -> Tracker {
        Tracker {
            name: name.to_owned(),
            gate: Gate::of(context.cu_ctx() as usize),
            context: Arc::downgrade(context),
            uses: Mutex::default(),
            pending: AtomicUsize::new(0),
        }
    }

    /// # Safety
    ///
    /// As for [`Acquired::new`].
    unsafe fn settle(
        &self,
        stream: sys::CUstream,
        id: u64,
        writes: bool,
    ) -> Result<(), SymbolErrorKind> {
        let mut uses = self.lock();
        uses.forget_done();
        for one in &mut uses.all {
            if (one.writes || writes) && one.stream != id && !one.waited.contains(&id) {
                // SAFETY: the event is recorded and lives; the caller vouches for the stream.
                unsafe { one.event.wait_on(stream) }
                    .map_err(|error| failed("cuStreamWaitEvent", error))?;
                one.waited.push(id);
            }
        }
        if uses.spare.is_none() {
            let event = Event::new(&self.context);
            uses.spare = Some(event.map_err(|error| failed("cuEventCreate", error))?);
        }
        Ok(())
    }

    /// Notes a use that is enqueued.
    ///
    /// # Safety
    ///
    /// As for [`Acquired::new`], which must have settled the same use.
    unsafe fn note(&self, stream: sys::CUstream, id: u64, writes: bool) -> Result<(), DriverError> {
        let mut uses = self.lock();
        let Uses { all, spare } = &mut *uses;
        let known = all.iter_mut().find(|one| one.stream == id && !one.writes);
        if let Some(known) = known
            && !writes
        {
            // SAFETY: by the caller.
            unsafe { known.event.record(stream) }?;
            known.waited.clear();
            return Ok(());
        }
        let Some(event) = spare.take() else {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN));
        };
        // SAFETY: by the caller.
        if let Err(error) = unsafe { event.record(stream) } {
            *spare = Some(event);
            return Err(error);
        }
        if writes {
            // It comes after all of them, so who waits for it need not wait for them.
            *spare = all.drain(..).next().map(|one| one.event);
        }
        all.push(Use {
            stream: id,
            event,
            writes,
            waited: Vec::new(),
        });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many uses are kept before those that are done are looked for.
const MANY: usize = 16;

impl Uses {
    fn forget_done(&mut self) {
        if self.all.len() >= MANY {
            let _relaxed = RelaxedCapture::enter();
            self.all.retain(|one| !one.event.is_done());
        }
    }
}

/// Uses of symbols that may be enqueued now, and are noted when this is finished or dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Acquired<'a> {
    uses: &'a [SymbolUse],
    /// How many of them are to be noted.
    open: usize,
    stream: sys::CUstream,
    id: u64,
    _entered: Entered,
}

impl<'a> Acquired<'a> {
    /// Makes the stream come after the uses that conflict with these, and keeps other threads
    /// from using symbols of the context until these are noted.
    ///
    /// # Safety
    ///
    /// The stream must be of the symbols' context, which must be current, and live until the
    /// result is gone.
    pub(crate) unsafe fn new(
        uses: &'a [SymbolUse],
        stream: sys::CUstream,
    ) -> Result<Option<Acquired<'a>>, SymbolError> {
        let Some((first, _)) = uses.first() else {
            return Ok(None);
        };
        let entered = first.gate.enter();
        // SAFETY: the stream lives, by the caller.
        unsafe { refuse_capture(stream) }.map_err(|kind| SymbolError::new(&first.name, kind))?;
        let mut acquired = Acquired {
            uses,
            open: 0,
            stream,
            // SAFETY: the stream is alive and its context current, as for this function.
            id: unsafe { stream_id(stream) },
            _entered: entered,
        };
        for (tracker, writes) in uses {
            let pending = tracker.pending.load(Relaxed);
            if pending == WRITE || *writes && pending > 0 {
                return Err(SymbolError::new(&tracker.name, SymbolErrorKind::Written));
            }
            // SAFETY: by the caller.
            unsafe { tracker.settle(stream, acquired.id, *writes) }
                .map_err(|kind| SymbolError::new(&tracker.name, kind))?;
            let pending = if *writes { WRITE } else { pending + 1 };
            tracker.pending.store(pending, Relaxed);
            acquired.open += 1;
        }
        Ok(Some(acquired))
    }

    /// Notes the uses. If that fails, they have been waited for.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub(crate) fn finish(mut self) -> Result<(), SymbolError> {
        self.note()
    }

    fn note(&mut self) -> Result<(), SymbolError> {
        let open = mem::take(&mut self.open);
        let mut noted = Ok(());
        for (tracker, writes) in &self.uses[..open] {
            let pending = tracker.pending.load(Relaxed);
            let pending = if *writes {
                0
            } else {
                pending.saturating_sub(1)
            };
            tracker.pending.store(pending, Relaxed);
            // SAFETY: the stream lives and its context is current, by the caller of `new`.
            let this = unsafe { tracker.note(self.stream, self.id, *writes) };
            noted =
                noted.and(this.map_err(|error| {
                    SymbolError::new(&tracker.name, failed("cuEventRecord", error))
                }));
        }
        if noted.is_err() {
            // SAFETY: as above. If this fails, the context is broken, and nothing runs in it.
            let _ = unsafe { result::stream::synchronize(self.stream) };
        }
        noted
    }
}

impl Drop for Acquired<'_> {
    fn drop(&mut self) {
        let _ = self.note();
    }
}

/// Refuses a stream that is being captured.
///
/// # Safety
///
/// The stream must live, and its context must be current.
pub(super) unsafe fn refuse_capture(stream: sys::CUstream) -> Result<(), SymbolErrorKind> {
    // SAFETY: the stream lives, by the caller.
    match unsafe { result::stream::is_capturing(stream) } {
        Ok(sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE) => Ok(()),
        Ok(_) => Err(SymbolErrorKind::Capturing),
        Err(error) => Err(failed("cuStreamIsCapturing", error)),
    }
}

fn failed(call: &'static str, source: DriverError) -> SymbolErrorKind {
    SymbolErrorKind::Driver { call, source }
}

/// A point of a stream that keeps no context alive.
#[derive(Debug)]
struct Event {
    raw: sys::CUevent,
    context: Weak<CudaContext>,
}

// SAFETY: the driver's functions may be called with an event from any thread.
unsafe impl Send for Event {}

impl Event {
    /// Of the context that is current.
    fn new(context: &Weak<CudaContext>) -> Result<Event, DriverError> {
        let mut raw = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: a context is current and `raw` takes the answer.
        unsafe { sys::cuEventCreate(&raw mut raw, flags) }.result()?;
        Ok(Event {
            raw,
            context: context.clone(),
        })
    }

    /// # Safety
    ///
    /// The stream must be of the event's context, which must be current.
    unsafe fn record(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        // SAFETY: by the caller; the event lives until it is dropped.
        unsafe { result::event::record(self.raw, stream) }
    }

    /// # Safety
    ///
    /// The stream must be of the context that is current, and the event recorded.
    unsafe fn wait_on(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: by the caller; the event lives until it is dropped.
        unsafe { result::stream::wait_event(stream, self.raw, flags) }
    }

    /// Whether it is certainly done. Its context must be current.
    fn is_done(&self) -> bool {
        // SAFETY: the event lives until it is dropped.
        unsafe { result::event::query(self.raw) }.is_ok()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // A context that is gone has taken its events with it.
        let Some(context) = self.context.upgrade() else {
            return;
        };
        let Ok(_current) = Current::enter(&context) else {
            return;
        };
        // SAFETY: nobody else has it. A failure leaks it.
        let _ = unsafe { result::event::destroy(self.raw) };
    }
}
