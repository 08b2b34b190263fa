//! How the work of a foreign array's owner is ordered with a launch.

use std::{
    ffi::c_void,
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread::{self, ThreadId},
};

use super::event::{self, Context, Raw};
use crate::{Guard, StreamRef, ViewError};

/// Where the owner of a foreign array works on it, as the array's protocol says or the caller
/// vouches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The owner works on this stream. A launch on another one waits for what is enqueued there,
    /// and what is enqueued there later waits for the launch; a launch on this stream needs
    /// nothing, nor does one on the legacy default stream if this is a stream that the driver itself
    /// keeps in order with it (one made without `CU_STREAM_NON_BLOCKING`), or the other way round. The
    /// host never waits.
    Stream(ForeignStream),
    /// Nothing has to be waited for, now and later: the owner does nothing with the array any
    /// more, or whoever passes it has seen to the order.
    Settled,
}

/// A stream of another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignStream {
    /// The `CUstream`; the legacy default stream is 1.
    raw: NonZero<usize>,
    /// The per-thread default stream is another one for each thread.
    thread: Option<ThreadId>,
}

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: NonZero<usize> = NonZero::<usize>::MIN;
const PER_THREAD: NonZero<usize> = LEGACY.saturating_add(1);

impl ForeignStream {
    /// The legacy default stream.
    pub const LEGACY_DEFAULT: ForeignStream = ForeignStream {
        raw: LEGACY,
        thread: None,
    };

    /// The calling thread's own default stream.
    #[must_use]
    #[cold]
    pub fn per_thread_default() -> ForeignStream {
        ForeignStream {
            raw: PER_THREAD,
            thread: Some(thread::current().id()),
        }
    }

    /// A stream by its `CUstream`: 0 and 1 are the legacy default stream, 2 the calling thread's.
    ///
    /// # Safety
    ///
    /// The stream must live as long as anything that is made with this.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(stream: *mut c_void) -> ForeignStream {
        match NonZero::new(stream.addr()) {
            None | Some(LEGACY) => ForeignStream::LEGACY_DEFAULT,
            Some(PER_THREAD) => ForeignStream::per_thread_default(),
            Some(raw) => ForeignStream { raw, thread: None },
        }
    }

    /// The `CUstream`: 1 for the legacy default stream, 2 for the thread's own.
    #[must_use]
    pub const fn raw(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.raw.get())
    }

    /// Whether this is the launching stream.
    #[inline(always)]
    fn is(self, stream: *mut c_void) -> bool {
        self.raw == NonZero::new(stream.addr()).unwrap_or(LEGACY) && self.is_reachable()
    }

    /// Whether the handle means on the calling thread what it meant where it was made.
    #[inline(always)]
    fn is_reachable(self) -> bool {
        self.thread
            .is_none_or(|thread| thread == thread::current().id())
    }

    /// The context of the stream, where `current` is the launching stream's.
    fn context(self, current: Context) -> Result<Context, ViewError> {
        if self.has_context() {
            event::context_of(Raw(self.raw()), current.device)
        } else {
            Ok(current)
        }
    }

    /// Whether the stream is of one context; the default streams are of whatever is current.
    fn has_context(self) -> bool {
        !matches!(self.raw, LEGACY | PER_THREAD)
    }
}

/// The stream on which an array needs nothing more, once that is known: neither a wait, nor a
/// record, nor a note for its release. As [`View::settled_on`](crate::View::settled_on) takes it.
#[derive(Debug)]
pub(crate) struct Settled([AtomicUsize; 1]);

impl Default for Settled {
    /// On no stream: the number is no handle of any.
    fn default() -> Settled {
        Settled([AtomicUsize::new(usize::MAX)])
    }
}

impl Settled {
    /// On a stream, for an array that never leaves the calling thread.
    #[cfg(feature = "pyo3")]
    #[inline(always)]
    pub(crate) fn on(stream: ForeignStream) -> Settled {
        Settled([AtomicUsize::new(stream.raw.get())])
    }

    /// That stream.
    #[cfg(feature = "pyo3")]
    #[inline(always)]
    pub(crate) fn stream(&self) -> ForeignStream {
        let raw = std::ptr::without_provenance_mut(self.0[0].load(Ordering::Relaxed));
        // SAFETY: it was one when this was made, and whoever made it vouched for its life.
        unsafe { ForeignStream::from_raw(raw) }
    }

    /// From now on, on this stream.
    #[inline(always)]
    pub(crate) fn note(&self, stream: StreamRef<'_>) {
        self.0[0].store(stream.raw().addr(), Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn streams(&self) -> &[AtomicUsize] {
        &self.0
    }
}

impl Order {
    /// The order that the `stream` argument of DLPack's `__dlpack__` stands for on CUDA: `None` and
    /// 1 are the legacy default stream, 2 the calling thread's, -1 asks for none.
    ///
    /// # Errors
    ///
    /// If it is 0, which the protocol disallows, or less than -1.
    ///
    /// # Safety
    ///
    /// As for [`ForeignStream::from_raw`].
    pub unsafe fn from_dlpack_stream(stream: Option<i64>) -> Result<Order, ViewError> {
        match stream {
            None => Ok(Order::Stream(ForeignStream::LEGACY_DEFAULT)),
            Some(-1) => Ok(Order::Settled),
            Some(0) => Err(ViewError::other(
                "DLPack does not allow stream 0, since it may mean two streams; pass 1 for the legacy default stream, 2 for the thread's own",
            )),
            // SAFETY: passed on to the caller.
            Some(handle) => unsafe { from_handle(handle) },
        }
    }

    /// The order that the `stream` of a CUDA array interface stands for: missing or `None` needs
    /// nothing, 1 is the legacy default stream, 2 the calling thread's.
    ///
    /// # Errors
    ///
    /// If it is 0, which the interface disallows, or negative.
    ///
    /// # Safety
    ///
    /// As for [`ForeignStream::from_raw`].
    pub unsafe fn from_array_interface_stream(stream: Option<i64>) -> Result<Order, ViewError> {
        match stream {
            None => Ok(Order::Settled),
            Some(0) => Err(ViewError::other(
                "the array interface does not allow stream 0, since it may mean two streams; its producer must export 1 for the legacy default stream, 2 for the thread's own",
            )),
            // SAFETY: passed on to the caller.
            Some(handle) => unsafe { from_handle(handle) },
        }
    }

    /// Whether a use on `stream` needs nothing before it and nothing after it.
    #[inline(always)]
    pub(crate) fn is_on(self, stream: StreamRef<'_>) -> bool {
        match self {
            Order::Stream(owner) => owner.thread.is_none() && owner.is(stream.raw()),
            Order::Settled => false,
        }
    }

    /// Whether the owner's stream is of one context, whichever is current.
    pub(crate) fn has_context(self) -> bool {
        matches!(self, Order::Stream(owner) if owner.has_context())
    }

    /// Whether all uses are joined to a stream of the owner's that any thread can reach.
    pub(crate) fn has_home(self) -> bool {
        matches!(self, Order::Stream(owner) if owner.thread.is_none())
    }
}

/// # Safety
///
/// As for [`ForeignStream::from_raw`].
unsafe fn from_handle(handle: i64) -> Result<Order, ViewError> {
    let raw = usize::try_from(handle)
        .map_err(|_| ViewError::other(format!("{handle} is not a stream of CUDA")))?;
    // SAFETY: passed on to the caller.
    let stream = unsafe { ForeignStream::from_raw(std::ptr::without_provenance_mut(raw)) };
    Ok(Order::Stream(stream))
}

/// Orders a launch on `stream` after and before the work of an array's owner, who keeps the memory
/// for as long as that takes.
pub(crate) fn order_use(order: Order, stream: StreamRef<'_>) -> Result<Guard<'_>, ViewError> {
    if order.is_on(stream) || order == Order::Settled {
        return Ok(Guard::none());
    }
    let joined = Joined::new(stream);
    if joined.before(order, stream.launch())? {
        return Ok(Guard::new(move || joined.after(order)));
    }
    Ok(Guard::none())
}

/// A launching stream that waits for an array's owner, by its handles.
#[derive(Clone, Copy)]
pub(crate) struct Joined {
    pub(crate) stream: Raw,
    context: *mut c_void,
    device: i32,
    /// The lower half of the launch's [number](StreamRef::launch): guards have little room.
    launch: u32,
}

impl Joined {
    #[expect(clippy::cast_possible_truncation, reason = "see the field")]
    pub(crate) fn new(stream: StreamRef<'_>) -> Joined {
        Joined {
            stream: Raw(stream.raw()),
            context: stream.context(),
            device: stream.device(),
            launch: stream.launch() as u32,
        }
    }

    /// Which stream it is, in its context: a thread's own default stream is that of the thread that launches.
    pub(crate) fn identity(self) -> ForeignStream {
        // SAFETY: the launch borrows the stream; what is kept of it is compared and not used.
        unsafe { ForeignStream::from_raw(self.stream.0) }
    }

    pub(crate) fn context(self) -> Context {
        Context {
            raw: self.context,
            device: self.device,
        }
    }

    /// Makes the launching stream wait for what the owner has enqueued, once for all arrays of a
    /// launch, by its [number](StreamRef::launch) or 0. Whether the owner must be joined
    /// [after](Joined::after) it: not where the streams are one, nor where the driver orders them or
    /// another of the arrays does so.
    pub(crate) fn before(self, order: Order, launch: u64) -> Result<bool, ViewError> {
        let Order::Stream(owner) = order else {
            return Ok(false);
        };
        if !owner.is_reachable() {
            return Err(ViewError::other(
                "its owner works on the default stream of another thread, which only that thread can reach; pass it on that thread, or export it on stream 1",
            ));
        }
        if owner.is(self.stream.0) {
            return Ok(false);
        }
        let earlier = (Raw(owner.raw()), owner.has_context());
        match event::join_before(launch, earlier, (self.context(), self.stream)) {
            Ok(joined) => Ok(joined),
            Err(event::Joining::Captured) => Err(captured()),
            Err(event::Joining::Failed(error)) => Err(error),
        }
    }

    /// Makes what the owner enqueues from now on wait for the launch.
    pub(crate) fn after(self, order: Order) -> Result<(), ViewError> {
        match order {
            Order::Stream(owner) if !owner.is(self.stream.0) => {
                event::join_after(self.launch, (self.context(), self.stream), Raw(owner.raw()))
            }
            _ => Ok(()),
        }
    }
}

#[cold]
fn captured() -> ViewError {
    ViewError::other(
        "its owner's stream is being captured into a graph, which would draw in all that waits for it; launch before the capture, or after it",
    )
}

/// What all uses so far of an array are known by, to whoever waits for them.
pub(crate) enum Settlement {
    /// By an event on the owner's stream, to which each has been joined.
    Event(event::Event),
    /// By an event that could not be recorded.
    Failed,
    /// By none: the stream is being captured, and an event would go into the capture.
    Captured,
    /// By their own: the owner has no stream that any thread can reach.
    Own,
}

pub(crate) fn settle(order: Order, used_in: Context) -> Settlement {
    match order {
        Order::Stream(owner) if owner.thread.is_none() => {
            let stream = Raw(owner.raw());
            let Ok(context) = owner.context(used_in) else {
                return Settlement::Failed;
            };
            if event::is_captured_in(context, stream) {
                return Settlement::Captured;
            }
            event::Event::recorded(context, stream).map_or(Settlement::Failed, Settlement::Event)
        }
        _ => Settlement::Own,
    }
}
