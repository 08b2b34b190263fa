//! What the launch that is being made has found out, waited for and recorded already, so that ten
//! arrays that were last used on one stream cost one wait.
//!
//! All arrays of a launch are borrowed before the first is acquired. What another stream did to
//! any of them was therefore enqueued before the launch began to wait for that stream, and one
//! wait covers it for all.

use std::{
    cell::RefCell,
    sync::{Arc, Weak},
};

use super::{
    order::StreamId,
    stream::{Held, Used},
};
use crate::event::Event;

/// What a stream can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    /// All that is enqueued on a stream.
    Stream(StreamId),
    /// A point of one, by the event's number.
    Point(u64),
}

#[derive(Debug)]
struct Joins {
    launch: u64,
    waited: Vec<Awaited>,
    used: Option<Noted>,
}

/// What stands for the launch; what it used keeps that alive.
#[derive(Debug)]
enum Noted {
    By(Weak<Held>),
    Until(StreamId, Weak<Event>),
}

thread_local! {
    static JOINS: RefCell<Joins> = const {
        RefCell::new(Joins { launch: 0, waited: Vec::new(), used: None })
    };
}

/// Waits, unless this launch has done so already. A wait that failed is no wait.
pub(super) fn once<E>(
    launch: u64,
    awaited: Awaited,
    wait: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    if of(launch, |joins| joins.waited.contains(&awaited)) == Some(true) {
        return Ok(());
    }
    wait()?;
    of(launch, |joins| joins.waited.push(awaited));
    Ok(())
}

/// What stands for this launch, found by `find` at the first call.
pub(super) fn used<E>(launch: u64, find: impl FnOnce() -> Result<Used, E>) -> Result<Used, E> {
    if let Some(used) = of(launch, |joins| joins.used.as_ref()?.upgrade()).flatten() {
        return Ok(used);
    }
    let used = find()?;
    of(launch, |joins| joins.used = Some(Noted::new(&used)));
    Ok(used)
}

/// The notes of this launch; none if its arrays do not share them, or the thread is ending.
fn of<R>(launch: u64, look: impl FnOnce(&mut Joins) -> R) -> Option<R> {
    if launch == 0 {
        return None;
    }
    let shared = JOINS.try_with(|joins| {
        let mut joins = joins.try_borrow_mut().ok()?;
        if joins.launch != launch {
            joins.launch = launch;
            joins.waited.clear();
            joins.used = None;
        }
        Some(look(&mut joins))
    });
    shared.ok().flatten()
}

impl Noted {
    fn new(used: &Used) -> Noted {
        match used {
            Used::By(held) => Noted::By(Arc::downgrade(held)),
            Used::Until(id, event) => Noted::Until(*id, Arc::downgrade(event)),
        }
    }

    fn upgrade(&self) -> Option<Used> {
        match self {
            Noted::By(held) => held.upgrade().map(Used::By),
            Noted::Until(id, event) => event.upgrade().map(|event| Used::Until(*id, event)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Awaited = Awaited::Stream(StreamId { context: 1, id: 1 });

    fn waits(launch: u64, awaited: Awaited) -> bool {
        let mut waited = false;
        once(launch, awaited, || {
            waited = true;
            Ok::<_, ()>(())
        })
        .unwrap();
        waited
    }

    #[test]
    fn a_launch_waits_once_for_each() {
        assert!(waits(1, STREAM));
        assert!(!waits(1, STREAM));
        assert!(waits(1, Awaited::Point(1)));
        assert!(!waits(1, Awaited::Point(1)));
    }

    #[test]
    fn another_launch_waits_again() {
        assert!(waits(1, STREAM));
        assert!(waits(2, STREAM));
        assert!(!waits(2, STREAM));
    }

    #[test]
    fn what_is_of_no_launch_always_waits() {
        assert!(waits(0, STREAM));
        assert!(waits(0, STREAM));
    }

    #[test]
    fn a_failed_wait_is_none() {
        assert!(once(1, STREAM, || Err(())).is_err());
        assert!(waits(1, STREAM));
    }
}
