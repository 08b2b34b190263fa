//! Lets owners go: exactly once, and not before the device is done with their memory.
//!
//! An owner whose memory may still be in use waits in a queue with the events of its uses. One
//! thread sleeps on the oldest, or is parked while there is none. The driver's host functions
//! would not do: they are skipped after an error, must not call the driver, and would wait for
//! Python's lock in the driver's thread.

use std::{
    collections::VecDeque,
    ffi::c_void,
    panic::{self, AssertUnwindSafe},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, AtomicPtr, Ordering},
    },
    thread,
};

use super::{
    event::{Context, Event, relaxed, synchronize},
    order::{ForeignStream, Joined, Order, Settled, Settlement, settle},
};
use crate::{Guard, Place, StreamRef, ViewError};

/// What keeps a foreign array's memory; dropping it lets go.
pub(crate) type Owner = Box<dyn Send + Sync>;

/// What launches did with an array, for the time of its release.
#[derive(Default)]
pub(crate) struct Uses {
    /// A context in which the array was used; null before the first use.
    context: AtomicPtr<c_void>,
    device: AtomicI32,
    /// The last use on each stream, where no stream of the owner's stands for all.
    events: Mutex<Vec<(ForeignStream, Event)>>,
    /// The owner's stream, once a launch on it is noted here: all later ones are as that was.
    settled: Settled,
}

impl Uses {
    /// Orders a launch on `stream`, of an array in `place`, after and before the owner's work and
    /// other launches.
    #[inline(always)]
    pub(crate) fn acquire<'a>(
        &'a self,
        order: Order,
        place: Place,
        stream: StreamRef<'a>,
    ) -> Result<Guard<'a>, ViewError> {
        // An array of another library has no tracker: alone is a launch on the stream on which the
        // array is settled.
        if stream.is_alone() {
            return Ok(Guard::none());
        }
        self.mark(stream);
        // Memory of the host is used on the default streams of several contexts, which are none's home.
        let has_home = order.has_home() && (order.has_context() || place != Place::Everywhere);
        if has_home && order.is_on(stream) {
            // The default streams of several contexts share their handles.
            if matches!(place, Place::Context { .. }) || order.has_context() {
                self.settled.note(stream);
            }
            return Ok(Guard::none());
        }
        self.join(order, has_home, Joined::new(stream), stream.launch())
    }

    /// The stream on which an array is settled.
    #[inline(always)]
    pub(crate) fn settled(&self) -> &Settled {
        &self.settled
    }

    #[inline(never)]
    fn join(
        &self,
        order: Order,
        has_home: bool,
        joined: Joined,
        launch: u64,
    ) -> Result<Guard<'_>, ViewError> {
        let joins = joined.before(order, launch)?;
        self.before(joined)?;
        Ok(match (joins, has_home) {
            (true, true) => Guard::new(move || joined.after(order)),
            (true, false) => Guard::new(move || {
                joined.after(order)?;
                self.record(joined)
            }),
            (false, true) => Guard::none(),
            (false, false) => Guard::new(move || self.record(joined)),
        })
    }

    /// Notes that a launch on `stream` uses the array.
    #[inline(always)]
    fn mark(&self, stream: StreamRef<'_>) {
        self.device.store(stream.device(), Ordering::Relaxed);
        self.context.store(stream.context(), Ordering::Release);
    }

    /// Makes the launching stream wait for the uses on others that the owner's stream does not
    /// stand for.
    pub(crate) fn before(&self, joined: Joined) -> Result<(), ViewError> {
        let stream = joined.identity();
        lock(&self.events)
            .iter()
            .filter(|(other, event)| *other != stream || event.context() != joined.context())
            .try_for_each(|(_, event)| event.hold_back(joined.stream))
    }

    /// Notes a launch that was enqueued, if the owner's stream will not stand for it.
    fn record(&self, joined: Joined) -> Result<(), ViewError> {
        let stream = joined.identity();
        let mut events = lock(&self.events);
        let last = events
            .iter()
            .find(|(other, last)| *other == stream && last.context() == joined.context());
        match last {
            // What the event stood for is before this on the stream.
            Some((_, last)) => last.record(joined.stream)?,
            None => events.push((stream, Event::recorded(joined.context(), joined.stream)?)),
        }
        Ok(())
    }

    /// Lets `owner` go when all that was noted is done: never, where nobody can tell.
    pub(crate) fn release(&self, order: Order, owner: Owner) {
        let raw = self.context.load(Ordering::Acquire);
        if raw.is_null() {
            return drop(owner);
        }
        let device = self.device.load(Ordering::Relaxed);
        let context = Context { raw, device };
        let noted = std::mem::take(&mut *lock(&self.events)).into_iter();
        let mut events: Vec<Event> = noted.map(|(_, event)| event).collect();
        match settle(order, context) {
            Settlement::Event(event) => events.push(event),
            Settlement::Failed => synchronize(context),
            Settlement::Captured => return std::mem::forget(owner),
            Settlement::Own => {}
        }
        hold(events, owner);
    }
}

/// Lets `owner` go when the events are done: now, if they are.
fn hold(events: Vec<Event>, owner: Owner) {
    if relaxed(|| events.iter().all(Event::is_done)) {
        return drop(owner);
    }
    let mut queue = lock(&QUEUE);
    queue.held.push_back(Held { events, owner });
    if !queue.reaping {
        queue.reaping = true;
        match thread::Builder::new()
            .name("gridcall-release".to_owned())
            .spawn(reap)
        {
            Ok(_) => {}
            // Without a thread the next call tries again; until then the owner is only kept.
            Err(_) => queue.reaping = false,
        }
    }
    drop(queue);
    ARRIVED.notify_one();
}

/// Lets those owners go whose uses are done, oldest first. Only for threads that may run any
/// owner's code: one that holds Python's lock, where there is one.
#[cfg(feature = "pyo3")]
pub(crate) fn release_done() {
    loop {
        let held = {
            let mut queue = lock(&QUEUE);
            match queue.held.front() {
                Some(held) if relaxed(|| held.events.iter().all(Event::is_done)) => {
                    queue.held.pop_front()
                }
                _ => return,
            }
        };
        drop(held);
    }
}

struct Held {
    events: Vec<Event>,
    owner: Owner,
}

struct Queue {
    held: VecDeque<Held>,
    /// Whether the thread was started.
    reaping: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    held: VecDeque::new(),
    reaping: false,
});

static ARRIVED: Condvar = Condvar::new();

fn reap() {
    loop {
        let mut queue = lock(&QUEUE);
        let held = loop {
            match queue.held.pop_front() {
                Some(held) => break held,
                None => queue = ARRIVED.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(queue);
        let Held { events, owner } = held;
        if !relaxed(|| events.iter().all(Event::wait)) {
            // The device may use its memory for as long as anybody can tell.
            std::mem::forget(owner);
            continue;
        }
        // A panic of an owner's drop must not keep the others' memory for ever.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| match events.first() {
            // Most owners free with the context current in which the memory was used.
            Some(event) => event.in_context(|| drop(owner)),
            None => drop(owner),
        }));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
