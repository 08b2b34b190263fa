//! Events of the driver: one to join two streams with, and one for each use that must be waited
//! for later.
//!
//! An event dies with its context, and using it then is undefined. So the primary context of a
//! device is retained, for good, before the first event is made in it.

use std::{
    cell::RefCell,
    ffi::{c_uint, c_void},
    ptr,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use super::driver::{Code, Driver, driver};
use crate::ViewError;

/// A context by its `CUcontext`, with the ordinal of its device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) raw: *mut c_void,
    pub(crate) device: i32,
}

// SAFETY: a handle of the driver, whose functions may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

/// A stream by its `CUstream`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) *mut c_void);

impl Raw {
    /// Whether it is the legacy default stream, by `CU_STREAM_LEGACY` or null.
    fn is_legacy(self) -> bool {
        self.0.addr() <= 1
    }
}

/// An event that this crate owns.
pub(crate) struct Event {
    raw: *mut c_void,
    context: Context,
    /// Whether the context is kept for good.
    pinned: bool,
}

// SAFETY: a handle of the driver, whose functions may be called from any thread.
unsafe impl Send for Event {}

/// Events that were let go, to be recorded anew: of contexts that are kept for good. What waits for
/// one still waits for what it stood for then.
static SPARE: Mutex<Vec<Event>> = Mutex::new(Vec::new());

impl Event {
    /// `CU_EVENT_DISABLE_TIMING`. With `CU_EVENT_BLOCKING_SYNC`, a host thread could sleep on the
    /// event, and recording it would cost five times as much.
    const FLAGS: u32 = 2;

    fn new(context: Context) -> Result<Event, ViewError> {
        let driver = driver()?;
        let pinned = pin(driver, context);
        within(driver, context, || {
            let mut raw = ptr::null_mut();
            // SAFETY: `raw` takes the answer; a context is current.
            let code = unsafe { (driver.event_create)(&raw mut raw, Event::FLAGS) };
            driver.check("cuEventCreate", code)?;
            Ok(Event {
                raw,
                context,
                pinned,
            })
        })
    }

    /// An event that is done when all that is enqueued on `stream`, a stream of `context`, is.
    pub(crate) fn recorded(context: Context, stream: Raw) -> Result<Event, ViewError> {
        if let Some(spare) = Event::spare(context) {
            match spare.record(stream) {
                Ok(()) => return Ok(spare),
                // The context may have been reset, and the event with it.
                Err(_) => spare.discard(),
            }
        }
        let event = Event::new(context)?;
        event.record(stream)?;
        Ok(event)
    }

    fn spare(context: Context) -> Option<Event> {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let position = spare.iter().rposition(|event| event.context == context)?;
        Some(spare.swap_remove(position))
    }

    /// Destroys the event, so that nobody records it anew.
    fn discard(mut self) {
        self.pinned = false;
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Lets the event stand for all that is enqueued on `stream`, of its context, by now.
    pub(crate) fn record(&self, stream: Raw) -> Result<(), ViewError> {
        let driver = driver()?;
        // The legacy and the per-thread stream have no context of their own but the current one.
        within(driver, self.context, || {
            // SAFETY: event and stream are of one context, by whoever made the event.
            let code = unsafe { (driver.event_record)(self.raw, stream.0) };
            driver.check("cuEventRecord", code)
        })
    }

    /// Makes `stream` wait for the event.
    pub(crate) fn hold_back(&self, stream: Raw) -> Result<(), ViewError> {
        let driver = driver()?;
        // SAFETY: the event was recorded; the stream is alive by whoever named it.
        let code = unsafe { (driver.stream_wait_event)(stream.0, self.raw, 0) };
        driver.check("cuStreamWaitEvent", code)
    }

    /// Whether nothing is left to wait for. An event that fails is done too: its context is
    /// broken, and nothing runs there any more. Where a capture keeps the driver from telling, it
    /// is not.
    pub(crate) fn is_done(&self) -> bool {
        !matches!(self.query(), code if code == Code::NOT_READY || code.is_of_capture())
    }

    fn query(&self) -> Code {
        let Ok(driver) = driver() else {
            return Code::SUCCESS;
        };
        // SAFETY: the event is ours and its context pinned.
        unsafe { (driver.event_query)(self.raw) }
    }

    /// Runs `call` while the event's context is current, or without, if that is gone.
    pub(crate) fn in_context(&self, call: impl FnOnce()) {
        let mut call = Some(call);
        if let Ok(driver) = driver() {
            // A failure to make it current leaves the call to be made without.
            let _ = within(driver, self.context, || {
                if let Some(call) = call.take() {
                    call();
                }
                Ok(())
            });
        }
        if let Some(call) = call {
            call();
        }
    }

    /// Sleeps until the event is done: at first for moments, at last for milliseconds. False if
    /// that is never told, as it was recorded into a capture.
    pub(crate) fn wait(&self) -> bool {
        let mut nap = Duration::from_micros(20);
        while !self.is_done() {
            if self.query() == Code::CAPTURED_EVENT {
                return false;
            }
            thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(2));
        }
        true
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        /// As many as launches of a few arrays have under way.
        const KEPT: usize = 64;
        if self.pinned {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < KEPT {
                spare.push(Event { ..*self });
                return;
            }
        }
        if let Ok(driver) = driver() {
            // SAFETY: the event is ours and not used again. One that is still being recorded or
            // waited for is destroyed by the driver when that is over.
            let _ = unsafe { (driver.event_destroy)(self.raw) };
        }
    }
}

/// What a thread keeps, so that joining two streams creates nothing and looks nothing up.
struct Scratch {
    /// What a wait has been enqueued for may be recorded anew, so one event for each context will
    /// do.
    events: Vec<Event>,
    /// The contexts of streams that were joined, by the handles.
    contexts: Vec<(usize, Context)>,
    /// The last launch that joined streams, and those.
    launch: u64,
    joined: Vec<usize>,
    /// The launch after which the event of its context was recorded last; 0 if it was for another
    /// reason.
    ended: u32,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const {
        RefCell::new(Scratch {
            events: Vec::new(),
            contexts: Vec::new(),
            launch: 0,
            joined: Vec::new(),
            ended: 0,
        })
    };
}

/// Whether a capture takes what is recorded on a stream, or would be ended by it. If that is a
/// default stream, its context must be current.
pub(crate) fn is_captured(stream: Raw) -> bool {
    let Ok(driver) = driver() else { return false };
    let mut capturing = 0;
    // SAFETY: the stream is alive by whoever named it; `capturing` takes the answer.
    let code = unsafe { (driver.stream_is_capturing)(stream.0, &raw mut capturing) };
    capturing != 0 || code.is_of_capture()
}

/// As [`is_captured`], whatever context is current.
pub(crate) fn is_captured_in(context: Context, stream: Raw) -> bool {
    let asked = driver().and_then(|driver| within(driver, context, || Ok(is_captured(stream))));
    asked.is_ok_and(|captured| captured)
}

/// Whether the driver itself has each of two streams wait for what is enqueued on the other by then: the
/// [legacy default stream][rule] of the context, which must be current, and one of its streams that
/// were not made without that. Neither must be captured.
///
/// [rule]: https://docs.nvidia.com/cuda/cuda-runtime-api/stream-sync-behavior.html
fn is_ordered(earlier: Raw, later: (Context, Raw)) -> bool {
    /// `CU_STREAM_NON_BLOCKING`.
    const NON_BLOCKING: c_uint = 1;
    let (context, later) = later;
    let other = match (earlier.is_legacy(), later.is_legacy()) {
        (true, false) => later,
        (false, true) => earlier,
        _ => return false,
    };
    let Ok(driver) = driver() else { return false };
    let (mut flags, mut found) = (NON_BLOCKING, ptr::null_mut());
    // SAFETY: the stream is alive by whoever named it; `flags` takes the answer.
    let code = unsafe { (driver.stream_get_flags)(other.0, &raw mut flags) };
    if code != Code::SUCCESS || flags & NON_BLOCKING != 0 {
        return false;
    }
    // A handle may be another stream's by now, so what was remembered of it does not serve.
    // SAFETY: as above; `found` takes the answer.
    let code = unsafe { (driver.stream_get_ctx)(other.0, &raw mut found) };
    code == Code::SUCCESS && found == context.raw && !is_captured(other)
}

/// Makes `later`, a stream of a context on a device, wait for all that is enqueued on `earlier`: once
/// for all arrays of a launch, by its number, or 0. Whether that was done now, and the one must be made
/// to wait for the launch: neither where the driver orders [the two](is_ordered). The context must be
/// current; `has_context` says whether the other stream is of one whichever is current.
pub(crate) fn join_before(
    launch: u64,
    earlier: (Raw, bool),
    later: (Context, Raw),
) -> Result<bool, Joining> {
    let (earlier, has_context) = earlier;
    let (current, later) = later;
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.is_joined(launch, earlier) {
            return Ok(false);
        }
        // Whoever launches on a stream that is being captured has vouched for that.
        if is_captured(earlier) && !is_captured(later) {
            return Err(Joining::Captured);
        }
        if is_ordered(earlier, (current, later)) {
            scratch.note_joined(launch, earlier);
            return Ok(false);
        }
        let mut context = current;
        if has_context {
            context = scratch.context_of(earlier, current.device)?;
        }
        if let Err(error) = scratch.join(context, earlier, later) {
            if !has_context {
                return Err(error.into());
            }
            // The context was remembered, and the handle may be of another stream by now.
            scratch.forget(earlier);
            context = scratch.context_of(earlier, current.device)?;
            scratch.join(context, earlier, later)?;
        }
        scratch.note_joined(launch, earlier);
        Ok(true)
    })
}

/// Makes `later` wait for all that is enqueued on `earlier`, a stream of the context beside it, which
/// is current. Of the arrays of a launch, by the lower half of its number, or 0, one event serves
/// all: each of them was joined [before](join_before), which forgot earlier launches.
pub(crate) fn join_after(
    launch: u32,
    earlier: (Context, Raw),
    later: Raw,
) -> Result<(), ViewError> {
    let (context, earlier) = earlier;
    SCRATCH.with_borrow_mut(|scratch| {
        if launch != 0 && scratch.ended == launch {
            let event = scratch.events.iter().find(|event| event.context == context);
            if let Some(event) = event {
                return event.hold_back(later);
            }
        }
        scratch.join(context, earlier, later)?;
        scratch.ended = launch;
        Ok(())
    })
}

/// Why a stream was not joined.
pub(crate) enum Joining {
    /// It is being captured, and would draw the other one in.
    Captured,
    Failed(ViewError),
}

impl From<ViewError> for Joining {
    fn from(error: ViewError) -> Joining {
        Joining::Failed(error)
    }
}

impl Scratch {
    /// Makes `later` wait for all that is enqueued on `earlier`, a stream of the context. If that is a
    /// default stream, the context must be current.
    fn join(&mut self, context: Context, earlier: Raw, later: Raw) -> Result<(), ViewError> {
        self.ended = 0;
        let position = self
            .events
            .iter()
            .position(|event| event.context == context);
        let position = match position {
            Some(position) => position,
            None => {
                self.events.push(Event::new(context)?);
                self.events.len() - 1
            }
        };
        let driver = driver()?;
        let event = &self.events[position];
        // SAFETY: event and stream are of one context, or the driver refuses.
        let code = unsafe { (driver.event_record)(event.raw, earlier.0) };
        let joined = driver
            .check("cuEventRecord", code)
            .and_then(|()| event.hold_back(later));
        if joined.is_err() {
            // The context may have been reset, and the event with it.
            self.events.swap_remove(position).discard();
        }
        joined
    }

    /// Whether an array of this launch, by its number, joined the owner's stream already.
    fn is_joined(&self, launch: u64, stream: Raw) -> bool {
        launch != 0 && self.launch == launch && self.joined.contains(&stream.0.addr())
    }

    /// Notes that an array of this launch, by its number, joins the owner's stream.
    fn note_joined(&mut self, launch: u64, stream: Raw) {
        if launch == 0 {
            return;
        }
        if self.launch != launch {
            self.launch = launch;
            self.joined.clear();
        }
        self.joined.push(stream.0.addr());
    }

    /// The context of a stream that has one of its own, as it was when the thread first asked.
    fn context_of(&mut self, stream: Raw, device: i32) -> Result<Context, ViewError> {
        const KEPT: usize = 16;
        let handle = stream.0.addr();
        let contexts = &mut self.contexts;
        if let Some((_, context)) = contexts.iter().find(|(known, _)| *known == handle) {
            return Ok(*context);
        }
        let driver = driver()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the stream is alive by whoever named it; `raw` takes the answer.
        let code = unsafe { (driver.stream_get_ctx)(stream.0, &raw mut raw) };
        driver.check("cuStreamGetCtx", code)?;
        let context = Context { raw, device };
        if contexts.len() == KEPT {
            contexts.remove(0);
        }
        contexts.push((handle, context));
        Ok(context)
    }

    /// Forgets the context of a stream.
    #[cold]
    fn forget(&mut self, stream: Raw) {
        self.contexts.retain(|(known, _)| *known != stream.0.addr());
    }
}

/// The context of a stream that has one of its own, as it was when the thread first asked.
pub(crate) fn context_of(stream: Raw, device: i32) -> Result<Context, ViewError> {
    SCRATCH.with_borrow_mut(|scratch| scratch.context_of(stream, device))
}

/// Runs `call`, which looks at events, so that it disturbs no capture on another thread.
pub(crate) fn relaxed<R>(call: impl FnOnce() -> R) -> R {
    /// `CU_STREAM_CAPTURE_MODE_RELAXED`.
    const RELAXED: c_uint = 2;
    let Ok(driver) = driver() else { return call() };
    let mut mode = RELAXED;
    // SAFETY: `mode` gives the mode and takes the former.
    let relaxed = unsafe { (driver.thread_exchange_stream_capture_mode)(&raw mut mode) };
    let result = call();
    if relaxed == Code::SUCCESS {
        // SAFETY: the mode was this thread's before.
        unsafe { (driver.thread_exchange_stream_capture_mode)(&raw mut mode) };
    }
    result
}

/// Waits for all that runs in a context, where events have failed. A failure means that nothing
/// runs there any more.
#[cold]
pub(crate) fn synchronize(context: Context) {
    let Ok(driver) = driver() else { return };
    let _ = within(driver, context, || {
        // SAFETY: a context is current.
        let code = unsafe { (driver.ctx_synchronize)() };
        driver.check("cuCtxSynchronize", code)
    });
}

/// Runs `call` while `context` is current.
pub(crate) fn in_context<R>(
    context: Context,
    call: impl FnOnce() -> Result<R, ViewError>,
) -> Result<R, ViewError> {
    within(driver()?, context, call)
}

/// The primary context of a device, kept for good.
#[cfg(feature = "pyo3")]
pub(crate) fn primary(ordinal: i32) -> Result<Context, ViewError> {
    let driver = driver()?;
    let mut device = 0;
    // SAFETY: `device` takes the answer.
    let code = unsafe { (driver.device_get)(&raw mut device, ordinal) };
    driver.check("cuDeviceGet", code)?;
    let mut raw = ptr::null_mut();
    // SAFETY: `raw` takes the answer.
    let code = unsafe { (driver.primary_ctx_retain)(&raw mut raw, device) };
    driver.check("cuDevicePrimaryCtxRetain", code)?;
    let context = Context {
        raw,
        device: ordinal,
    };
    pin(driver, context);
    // SAFETY: it was retained a moment ago, and once more if it could be kept.
    unsafe { (driver.primary_ctx_release)(device) };
    Ok(context)
}

/// Runs `call` while `context` is current.
fn within<R>(
    driver: &Driver,
    context: Context,
    call: impl FnOnce() -> Result<R, ViewError>,
) -> Result<R, ViewError> {
    // SAFETY: the context is alive: that of a borrowed stream, or pinned.
    let code = unsafe { (driver.ctx_push_current)(context.raw) };
    driver.check("cuCtxPushCurrent", code)?;
    let result = call();
    let mut popped = ptr::null_mut();
    // SAFETY: pops what was pushed.
    let code = unsafe { (driver.ctx_pop_current)(&raw mut popped) };
    let popped = driver.check("cuCtxPopCurrent", code);
    result.and_then(|result| popped.map(|()| result))
}

/// Keeps a primary context alive for good; of others, their makers have charge. Whether it is kept.
fn pin(driver: &Driver, context: Context) -> bool {
    static PINNED: Mutex<Vec<(i32, usize)>> = Mutex::new(Vec::new());
    let mut pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (context.device, context.raw.addr());
    if pinned.contains(&key) {
        return true;
    }
    let mut device = 0;
    // SAFETY: `device` takes the answer.
    if unsafe { (driver.device_get)(&raw mut device, context.device) } != Code::SUCCESS {
        return false;
    }
    let mut primary = ptr::null_mut();
    // SAFETY: `primary` takes the answer.
    if unsafe { (driver.primary_ctx_retain)(&raw mut primary, device) } != Code::SUCCESS {
        return false;
    }
    if primary == context.raw {
        pinned.push(key);
        return true;
    }
    // SAFETY: it was retained a moment ago.
    unsafe { (driver.primary_ctx_release)(device) };
    false
}
