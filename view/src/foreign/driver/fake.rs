//! A driver that only writes down what it is asked for, so that tests can read the order.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

use super::{Code, Driver};

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static EVENTS: AtomicUsize = AtomicUsize::new(0x100);
/// What the driver says of every event.
static ANSWER: AtomicU32 = AtomicU32::new(0);
/// Whether all streams are being captured.
static CAPTURING: AtomicBool = AtomicBool::new(false);
/// The function that fails, by name.
static FAILING: Mutex<Option<&'static str>> = Mutex::new(None);

pub(crate) const CONTEXT: usize = 0xc0;

/// Of all streams but the default ones, this one waits for the legacy default stream, and that for it.
pub(crate) const BLOCKING: usize = 0xb1;
/// So does this one, of another context.
pub(crate) const BLOCKING_ELSEWHERE: usize = 0xb2;

/// The fake is on while it lives; one test at a time.
pub(crate) struct Session(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

pub(crate) fn session() -> Session {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    lock(&CALLS).clear();
    *lock(&FAILING) = None;
    ANSWER.store(0, Ordering::SeqCst);
    CAPTURING.store(false, Ordering::SeqCst);
    ON.store(true, Ordering::SeqCst);
    Session(one)
}

#[expect(
    clippy::unused_self,
    reason = "the session is what makes the statics one test's own"
)]
impl Session {
    /// What was asked for since the last time, but for contexts.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&CALLS))
    }

    /// Writes nothing down any more, for tests that ask for much.
    pub(crate) fn quiet(&self) {
        ON.store(false, Ordering::SeqCst);
    }

    /// Whether the device is still at work, for all that asks.
    pub(crate) fn busy(&self, busy: bool) {
        self.say_of_events(if busy { Code::NOT_READY } else { Code::SUCCESS });
    }

    pub(crate) fn say_of_events(&self, code: Code) {
        ANSWER.store(code.0, Ordering::SeqCst);
    }

    pub(crate) fn capturing(&self, capturing: bool) {
        CAPTURING.store(capturing, Ordering::SeqCst);
    }

    pub(crate) fn fail(&self, function: Option<&'static str>) {
        *lock(&FAILING) = function;
    }

    /// Counts the events that were made.
    pub(crate) fn events_made(&self) -> usize {
        EVENTS.load(Ordering::SeqCst)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        ANSWER.store(0, Ordering::SeqCst);
        ON.store(false, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log(function: &'static str, call: impl FnOnce() -> String) -> Code {
    if *lock(&FAILING) == Some(function) {
        return Code(999);
    }
    if ON.load(Ordering::SeqCst) {
        lock(&CALLS).push(call());
    }
    Code::SUCCESS
}

/// Always this one in tests: nothing here needs a device.
pub(super) static FAKE: Driver = Driver {
    ctx_push_current,
    ctx_pop_current,
    ctx_synchronize,
    #[cfg(feature = "pyo3")]
    device_get_count,
    #[cfg(feature = "pyo3")]
    pointer_get_attribute,
    #[cfg(feature = "pyo3")]
    mem_alloc_async,
    #[cfg(feature = "pyo3")]
    mem_free_async,
    device_get,
    primary_ctx_retain,
    primary_ctx_release,
    stream_get_ctx,
    stream_get_flags,
    stream_is_capturing,
    stream_wait_event,
    event_create,
    event_record,
    event_query,
    event_destroy,
    thread_exchange_stream_capture_mode,
    get_error_name: error_text,
    get_error_string: error_text,
    _library: None,
};

unsafe extern "C" fn ctx_push_current(_: *mut c_void) -> Code {
    Code::SUCCESS
}

unsafe extern "C" fn ctx_pop_current(_: *mut *mut c_void) -> Code {
    Code::SUCCESS
}

unsafe extern "C" fn ctx_synchronize() -> Code {
    log("ctx_synchronize", || "synchronize the context".to_owned())
}

#[cfg(feature = "pyo3")]
unsafe extern "C" fn device_get_count(count: *mut c_int) -> Code {
    // SAFETY: the caller provides the place.
    unsafe { *count = 2 };
    Code::SUCCESS
}

/// Addresses say what they are: from 0xd000 on of device 1, from 0xe000 on of the host, from
/// 0xf000 on managed, from 0x10000 on of nobody; below of device 0.
#[cfg(feature = "pyo3")]
unsafe extern "C" fn pointer_get_attribute(
    value: *mut c_void,
    attribute: c_uint,
    pointer: u64,
) -> Code {
    let answer: u32 = match (attribute, pointer >> 12) {
        (_, 0x10..) => return Code(1),
        (2, 0xe) | (8, 0xf) | (9, 0xd) => 1,
        (2, _) => 2,
        _ => 0,
    };
    // SAFETY: the caller provides the place, of four bytes for all that is asked here.
    unsafe { *value.cast() = answer };
    Code::SUCCESS
}

#[cfg(feature = "pyo3")]
unsafe extern "C" fn mem_alloc_async(pointer: *mut u64, bytes: usize, _: *mut c_void) -> Code {
    // SAFETY: the caller provides the place.
    unsafe { *pointer = 0xa000 };
    log("mem_alloc_async", || format!("allocate {bytes} bytes"))
}

#[cfg(feature = "pyo3")]
unsafe extern "C" fn mem_free_async(pointer: u64, _: *mut c_void) -> Code {
    log("mem_free_async", || format!("free {pointer:#x}"))
}

unsafe extern "C" fn device_get(device: *mut c_int, ordinal: c_int) -> Code {
    // SAFETY: the caller provides the place.
    unsafe { *device = ordinal };
    Code::SUCCESS
}

unsafe extern "C" fn primary_ctx_retain(context: *mut *mut c_void, _: c_int) -> Code {
    // SAFETY: the caller provides the place.
    unsafe { *context = std::ptr::without_provenance_mut(CONTEXT) };
    Code::SUCCESS
}

unsafe extern "C" fn primary_ctx_release(_: c_int) -> Code {
    Code::SUCCESS
}

unsafe extern "C" fn stream_get_ctx(stream: *mut c_void, context: *mut *mut c_void) -> Code {
    let elsewhere = stream.addr() == BLOCKING_ELSEWHERE;
    // SAFETY: the caller provides the place.
    unsafe { *context = std::ptr::without_provenance_mut(CONTEXT + usize::from(elsewhere)) };
    Code::SUCCESS
}

unsafe extern "C" fn stream_get_flags(stream: *mut c_void, flags: *mut c_uint) -> Code {
    let blocking = matches!(stream.addr(), 0..=2 | BLOCKING | BLOCKING_ELSEWHERE);
    // SAFETY: the caller provides the place.
    unsafe { *flags = (!blocking).into() };
    Code::SUCCESS
}

unsafe extern "C" fn stream_is_capturing(_: *mut c_void, capturing: *mut c_uint) -> Code {
    // SAFETY: the caller provides the place.
    unsafe { *capturing = CAPTURING.load(Ordering::SeqCst).into() };
    Code::SUCCESS
}

unsafe extern "C" fn stream_wait_event(stream: *mut c_void, _: *mut c_void, _: c_uint) -> Code {
    log("stream_wait_event", || {
        format!("{:#x} waits", stream.addr())
    })
}

unsafe extern "C" fn event_create(event: *mut *mut c_void, _: c_uint) -> Code {
    let number = EVENTS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller provides the place.
    unsafe { *event = std::ptr::without_provenance_mut(number) };
    Code::SUCCESS
}

unsafe extern "C" fn event_record(_: *mut c_void, stream: *mut c_void) -> Code {
    log("event_record", || format!("record on {:#x}", stream.addr()))
}

unsafe extern "C" fn event_query(_: *mut c_void) -> Code {
    Code(ANSWER.load(Ordering::SeqCst))
}

unsafe extern "C" fn event_destroy(_: *mut c_void) -> Code {
    Code::SUCCESS
}

unsafe extern "C" fn thread_exchange_stream_capture_mode(_: *mut c_uint) -> Code {
    Code::SUCCESS
}

unsafe extern "C" fn error_text(_: Code, text: *mut *const c_char) -> Code {
    const TEXT: &CStr = c"a failure of the test";
    // SAFETY: the caller provides the place.
    unsafe { *text = TEXT.as_ptr() };
    Code::SUCCESS
}
