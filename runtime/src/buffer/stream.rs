//! The streams that use buffers, and how a stream waits for another.
//!
//! A stream that can be [`Held`] is kept alive by what it used, and its work is waited for when
//! somebody must: nothing is recorded before. That takes the stream's `Arc`, which a launch does
//! not see. So a stream is known once a buffer was made, copied or awaited on it, and found again
//! by the address of cudarc's object. Streams that are not known, those of other bindings, and the
//! per-thread stream, which is another on each thread, are noted by an event instead.

use std::{
    collections::BTreeMap,
    ffi::c_void,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use gridcall_view::StreamRef;

use super::{
    joins::{self, Awaited},
    memory::{Memory, enter},
    order::{StreamId, User},
    uses::Launching,
};
use crate::{
    current::Current,
    driver::{DriverCode, stream_id},
    error::{BufferError, BufferErrorKind},
    event::Event,
    relaxed::RelaxedCapture,
};

/// The handles of the legacy default stream, one and the same, and of the per-thread one.
const NULL: usize = 0;
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// A stream that is kept alive.
#[derive(Debug)]
pub(super) struct Held {
    stream: Arc<CudaStream>,
    id: StreamId,
    /// For recording when a stream of the same context must be waited for, once it was needed.
    spare: Mutex<Option<Event>>,
}

/// A stream that was seen by its `Arc`. Keeps nothing alive, but the address from being another's.
#[derive(Debug)]
struct Known {
    stream: Weak<CudaStream>,
    held: Weak<Held>,
}

/// All known streams, by [`key`].
static KNOWN: Mutex<BTreeMap<usize, Known>> = Mutex::new(BTreeMap::new());

impl Held {
    /// Holds a stream, unless it is the per-thread one.
    pub(super) fn new(stream: &Arc<CudaStream>) -> Result<Option<Arc<Held>>, BufferError> {
        match handle(stream) {
            PER_THREAD => Ok(None),
            _ => Held::hold(stream).map(Some),
        }
    }

    /// Holds the legacy stream of a context.
    pub(super) fn legacy(context: &Arc<CudaContext>) -> Result<Arc<Held>, BufferError> {
        Held::hold(&context.default_stream())
    }

    /// Finds a stream that is known.
    fn find(stream: &CudaStream) -> Result<Option<Arc<Held>>, BufferError> {
        let alive = {
            let known = known();
            let Some(known) = known.get(&key(stream)) else {
                return Ok(None);
            };
            if let Some(held) = known.held.upgrade() {
                return Ok(Some(held));
            }
            known.stream.upgrade()
        };
        // At its address there is no other object, so it is the one that is asked for.
        alive.map(|stream| Held::hold(&stream)).transpose()
    }

    fn hold(stream: &Arc<CudaStream>) -> Result<Arc<Held>, BufferError> {
        let key = key(stream);
        if let Some(held) = known().get(&key).and_then(|known| known.held.upgrade()) {
            return Ok(held);
        }
        let context = stream.context();
        let _current = enter(stream)?;
        let held = Arc::new(Held {
            stream: stream.clone(),
            id: identify(stream.cu_stream(), context),
            spare: Mutex::new(None),
        });
        let mut known = known();
        if let Some(other) = known.get(&key).and_then(|known| known.held.upgrade()) {
            return Ok(other);
        }
        // Doubles before it is cleared again, so that this is rare.
        if known.len().is_power_of_two() && known.len() >= 64 {
            known.retain(|_, known| known.stream.strong_count() > 0);
        }
        let entry = Known {
            stream: Arc::downgrade(stream),
            held: Arc::downgrade(&held),
        };
        known.insert(key, entry);
        Ok(held)
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    pub(super) fn context(&self) -> *mut c_void {
        self.stream.context().cu_ctx().cast()
    }

    fn raw(&self) -> sys::CUstream {
        self.stream.cu_stream()
    }

    /// Makes the stream `waiting`, of the context that is current, wait for all that is enqueued
    /// on this one, by the spare event of a stream that lives longer, if it is of this context.
    fn join(&self, waiting: sys::CUstream, lender: &Held) -> Result<(), BufferError> {
        let context = self.stream.context();
        let lender = if lender.context() == self.context() {
            lender
        } else {
            self
        };
        let mut spare = lender.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match &*spare {
            Some(event) => event,
            None => {
                let event = Event::new(context).map_err(|e| driver_error("cuEventCreate", e))?;
                &*spare.insert(event)
            }
        };
        {
            let _current = enter(&self.stream)?;
            if is_capturing(self.raw())? {
                return Err(BufferErrorKind::UserCapturing.into());
            }
            // SAFETY: the stream is held, the event was made in its context, which is current.
            unsafe { event.record(self.raw()) }.map_err(|e| driver_error("cuEventRecord", e))?;
        }
        // SAFETY: the caller's context is current again.
        unsafe { event.wait_on(waiting) }.map_err(|e| driver_error("cuStreamWaitEvent", e))
    }
}

/// Makes a stream known.
pub(crate) fn know(stream: &Arc<CudaStream>) -> Result<(), BufferError> {
    Held::new(stream).map(|_| ())
}

/// By what a stream is found again. The address of cudarc's object, which [`Known`] pins;
/// or for the legacy stream, which has many objects, its context's handle, made odd.
fn key(stream: &CudaStream) -> usize {
    match handle(stream) {
        NULL => stream.context().cu_ctx() as usize | 1,
        _ => std::ptr::from_ref(stream) as usize,
    }
}

fn known() -> MutexGuard<'static, BTreeMap<usize, Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle, with one for the legacy stream.
fn handle(stream: &CudaStream) -> usize {
    normal(stream.cu_stream() as usize)
}

fn normal(handle: usize) -> usize {
    if handle == LEGACY { NULL } else { handle }
}

/// The identity of a living stream whose context is current.
fn identify(stream: sys::CUstream, context: &CudaContext) -> StreamId {
    StreamId {
        context: context.cu_ctx() as usize,
        // SAFETY: the stream is alive and its context current: each caller holds or borrows the
        // stream, and has entered the context.
        id: unsafe { stream_id(stream) },
    }
}

/// Whether work that is enqueued on the stream, whose context is current, goes into a graph.
pub(crate) fn is_capturing(stream: sys::CUstream) -> Result<bool, BufferError> {
    // SAFETY: the caller's stream is alive.
    match unsafe { result::stream::is_capturing(stream) } {
        Ok(status) => Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
        Err(source) => Err(driver_error("cuStreamIsCapturing", source)),
    }
}

/// The error of a call that failed, unless it is one of an earlier kernel.
pub(crate) fn driver_error(call: &'static str, source: DriverError) -> BufferError {
    if DriverCode::from(source).breaks_context() {
        return BufferErrorKind::Broken(source).into();
    }
    BufferErrorKind::Driver { call, source }.into()
}

/// What a buffer remembers of a use.
#[derive(Clone, Debug)]
pub(super) enum Used {
    /// The stream, whatever is enqueued on it.
    By(Arc<Held>),
    /// A point of a stream that is not held. Until it is recorded, the use may be anywhere.
    Until(StreamId, Arc<Event>),
}

impl Used {
    /// The use of an allocation that all until now are, and the handle by which its stream is
    /// met again. The stream's context must be current.
    pub(super) fn first(stream: &Arc<CudaStream>) -> Result<(Used, Option<usize>), BufferError> {
        if let Some(held) = Held::new(stream)? {
            return Ok((Used::By(held), Some(handle(stream))));
        }
        let event = Event::new(stream.context()).map_err(|e| driver_error("cuEventCreate", e))?;
        // If it fails, the event stays unrecorded, and the use is then waited for otherwise.
        // SAFETY: the stream is alive and of the event's context, which is current.
        let _ = unsafe { event.record(stream.cu_stream()) };
        let id = identify(stream.cu_stream(), stream.context());
        Ok((Used::Until(id, Arc::new(event)), None))
    }
}

impl Used {
    /// What can stand for a use on `stream`, whose context is current.
    fn find(memory: &Memory, stream: StreamRef<'_>) -> Result<Used, BufferError> {
        let raw: sys::CUstream = stream.raw().cast();
        if is_capturing(raw)? {
            return Err(BufferErrorKind::Capturing.into());
        }
        let context = match stream.native::<CudaStream>() {
            Some(native) => native.context(),
            None if stream.context() == memory.context() => memory.stream().context(),
            None => {
                return Err(BufferErrorKind::OtherContext {
                    buffer: memory.device(),
                    stream: stream.device(),
                }
                .into());
            }
        };
        if normal(raw as usize) == NULL {
            return Held::legacy(context).map(Used::By);
        }
        if let Some(native) = stream.native::<CudaStream>()
            && let Some(held) = Held::find(native)?
        {
            return Ok(Used::By(held));
        }
        let event = Event::new(context).map_err(|e| driver_error("cuEventCreate", e))?;
        Ok(Used::Until(identify(raw, context), Arc::new(event)))
    }
}

impl User for Used {
    fn id(&self) -> StreamId {
        match self {
            Used::By(held) => held.id,
            Used::Until(id, _) => *id,
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self, Used::By(_))
    }

    fn is_same(&self, other: &Used) -> bool {
        match (self, other) {
            (Used::By(a), Used::By(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn is_over(&self) -> bool {
        match self {
            // A launch borrows the stream from an `Arc` of its own or of a buffer: where there is
            // none but ours, none is being made. The legacy stream has other objects.
            Used::By(held) => {
                Arc::strong_count(&held.stream) == 1
                    && handle(&held.stream) != NULL
                    && Current::enter(held.stream.context()).is_ok_and(|_current| {
                        let _relaxed = RelaxedCapture::enter();
                        // SAFETY: the stream is held and its context current.
                        unsafe { sys::cuStreamQuery(held.raw()) }.result().is_ok()
                    })
            }
            Used::Until(_, event) => event.is_recorded() && event.is_done() == Ok(true),
        }
    }
}

/// A stream that is about to use a buffer. Its context is current for as long.
#[derive(Debug)]
pub(super) struct Launcher<'a> {
    raw: sys::CUstream,
    launch: u64,
    handle: Option<usize>,
    used: Used,
    /// Lends the event for waits.
    home: &'a Held,
}

impl<'a> Launcher<'a> {
    /// For a use of `memory` on `stream`, whose context is current.
    pub(super) fn new(memory: &'a Memory, stream: StreamRef<'a>) -> Result<Self, BufferError> {
        let used = joins::used(stream.launch(), || Used::find(memory, stream))?;
        let handle = match &used {
            Used::By(held) if held.context() == memory.context() => Some(handle(&held.stream)),
            _ => None,
        };
        Ok(Launcher {
            raw: stream.raw().cast(),
            launch: stream.launch(),
            handle,
            used,
            home: memory.home(),
        })
    }

    /// On a stream that is held and is not being captured.
    pub(super) fn of(memory: &'a Memory, held: &Arc<Held>, launch: u64) -> Self {
        let here = held.stream.context().cu_ctx().cast() == memory.context();
        Launcher {
            raw: held.raw(),
            launch,
            handle: here.then(|| handle(&held.stream)),
            used: Used::By(held.clone()),
            home: memory.home(),
        }
    }

    /// The event to record once the use is enqueued, where the stream cannot stand for it.
    pub(super) fn event(&self) -> Option<&Arc<Event>> {
        match &self.used {
            Used::By(_) => None,
            Used::Until(_, event) => Some(event),
        }
    }
}

impl Launching for Launcher<'_> {
    type User = Used;
    type Error = BufferError;

    fn handle(&self) -> Option<usize> {
        self.handle
    }

    fn user(&self) -> Used {
        self.used.clone()
    }

    fn wait_for(&self, used: &Used) -> Result<(), BufferError> {
        match used {
            Used::By(held) => joins::once(self.launch, Awaited::Stream(held.id), || {
                held.join(self.raw, self.home)
            }),
            Used::Until(_, event) if event.is_recorded() => {
                joins::once(self.launch, Awaited::Point(event.serial()), || {
                    // SAFETY: the launching stream's context is current.
                    unsafe { event.wait_on(self.raw) }
                        .map_err(|e| driver_error("cuStreamWaitEvent", e))
                })
            }
            // The guard of that use was forgotten, or recording it failed, or another thread is
            // about to use another part: the host waits for all there is.
            Used::Until(_, event) => event
                .synchronise_context()
                .map_err(|e| driver_error("cuCtxSynchronize", e)),
        }
    }
}
