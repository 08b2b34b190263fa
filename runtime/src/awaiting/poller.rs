//! The thread that looks which events are done. It sleeps while there are none, and looks again
//! after an eighth of the time that the newest has been waited for, within limits: what takes a
//! millisecond is noticed within an eighth of one.

use std::{
    any::Any,
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    event::{Event, ends_context},
    relaxed::RelaxedCapture,
};

/// An event that a future waits for.
#[derive(Debug)]
pub(super) struct Wait {
    event: Arc<Event>,
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    waker: Option<Waker>,
    /// Whether the thread has it.
    watched: bool,
}

impl Wait {
    pub(super) fn new(event: Arc<Event>) -> Wait {
        Wait {
            event,
            slot: Mutex::default(),
        }
    }

    /// Wakes nobody from now on.
    pub(super) fn forget_waker(&self) {
        self.slot().waker = None;
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread does when an event is done.
enum Task {
    Wake(Arc<Wait>),
    Drop(Arc<Event>, Box<dyn Any + Send>),
}

struct Watched {
    task: Task,
    since: Instant,
}

/// What was given to the thread and it has not taken yet.
static NEW: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// Wakes the task once the event is done, or has failed.
pub(super) fn watch(wait: &Arc<Wait>, waker: &Waker) -> io::Result<()> {
    let new = {
        let mut slot = wait.slot();
        match &mut slot.waker {
            Some(present) => present.clone_from(waker),
            absent => *absent = Some(waker.clone()),
        }
        !std::mem::replace(&mut slot.watched, true)
    };
    if new {
        give(Task::Wake(wait.clone()))?;
    }
    Ok(())
}

/// Drops what is owned once the event is done, or its context has failed. Without a thread, or if
/// the driver does not tell, it leaks.
pub(super) fn keep(event: Arc<Event>, owned: Box<dyn Any + Send>) {
    if thread().is_err() {
        std::mem::forget(owned);
        return;
    }
    let _ = give(Task::Drop(event, owned));
}

fn give(task: Task) -> io::Result<()> {
    let thread = thread()?;
    let since = Instant::now();
    new().push(Watched { task, since });
    thread.unpark();
    Ok(())
}

fn new() -> MutexGuard<'static, Vec<Watched>> {
    NEW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread, started at the first call that succeeds.
fn thread() -> io::Result<&'static Thread> {
    static THREAD: OnceLock<Thread> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(thread) = THREAD.get() {
        return Ok(thread);
    }
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(thread) = THREAD.get() {
        return Ok(thread);
    }
    let handle = thread::Builder::new()
        .name("gridcall-await".into())
        .spawn(run)?;
    Ok(THREAD.get_or_init(|| handle.thread().clone()))
}

const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(2);

fn run() {
    // What is dropped here must not disturb a capture on another thread either.
    RelaxedCapture::enter().for_good();
    let mut watched: Vec<Watched> = Vec::new();
    loop {
        watched.append(&mut new());
        let mut rest = Vec::with_capacity(watched.len());
        for one in watched.drain(..) {
            if is_over(&one.task) {
                // A panic of a waker or a destructor is its own: others are still watched.
                let _ = panic::catch_unwind(AssertUnwindSafe(|| end(one.task)));
            } else {
                rest.push(one);
            }
        }
        watched = rest;
        match watched.iter().map(|one| one.since.elapsed()).min() {
            None => thread::park(),
            Some(youngest) => thread::park_timeout((youngest / 8).clamp(SHORTEST, LONGEST)),
        }
    }
}

/// Whether there is nothing more to look for: the event is done, or looking failed.
fn is_over(task: &Task) -> bool {
    let event = match task {
        Task::Wake(wait) => &wait.event,
        Task::Drop(event, _) => event,
    };
    event.is_done().unwrap_or(true)
}

fn end(task: Task) {
    match task {
        // If looking failed, the future will find that too.
        Task::Wake(wait) => {
            let waker = {
                let mut slot = wait.slot();
                slot.watched = false;
                slot.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Task::Drop(event, owned) => match event.is_done() {
            Ok(true) => drop(owned),
            Err(error) if ends_context(error) => drop(owned),
            // The device may still use it.
            Ok(false) | Err(_) => std::mem::forget(owned),
        },
    }
}
