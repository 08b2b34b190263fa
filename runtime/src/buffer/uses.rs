//! The uses of one allocation as a launch meets them: an answer in a few instructions while one
//! stream uses it or several read it, and a lock otherwise.
//!
//! The first of `open` is the stream that all uses are on, if they are on one: its further uses
//! need no wait, and are not noted. The others are streams that have waited for all writes: their
//! further reads need no wait, and are not noted. These are raw handles of streams that `order`
//! keeps alive, so that no other stream can have the handle.
//!
//! Of two uses that conflict, Rust's borrow rules let the second begin only when the first has
//! ended, and whatever tells its thread so also shows it what the first has stored here. A thread
//! that reads may meet another that comes to read at the same time: it sees the state before or
//! after, and both are right for a read on its stream. A handle is stored after the waits of its
//! stream are enqueued, and released to whoever acquires it: who sees it enqueues behind them.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
};

use super::order::{Access, Order, User};

/// No stream's handle. The legacy stream's, 0 and 1, are both noted as 0.
const NONE: usize = usize::MAX;

/// So many streams read one allocation without its lock. Few in tests, so that they often do not
/// suffice.
const READERS: usize = if cfg!(test) { 3 } else { 15 };

#[derive(Debug)]
pub(super) struct Uses<U> {
    open: [AtomicUsize; 1 + READERS],
    order: Mutex<Order<U>>,
}

/// A stream that is about to use an allocation.
pub(super) trait Launching {
    type User: User;
    type Error;

    /// The handle by which the stream is met again, if it is kept alive by `user`, and is the
    /// same stream on every thread.
    fn handle(&self) -> Option<usize>;

    /// What stands for the use.
    fn user(&self) -> Self::User;

    /// Makes the stream wait for all that `user` stands for.
    fn wait_for(&self, user: &Self::User) -> Result<(), Self::Error>;
}

impl<U: User> Uses<U> {
    /// One stream that has written it all; its handle, if it is met again by that.
    pub(super) fn new(by: U, handle: Option<usize>, bytes: usize) -> Uses<U> {
        let open = [const { AtomicUsize::new(NONE) }; 1 + READERS];
        open[0].store(handle.unwrap_or(NONE), Release);
        Uses {
            open,
            order: Mutex::new(Order::new(by, bytes)),
        }
    }

    /// The handles of the streams that may read without more ado, the first also write.
    #[inline(always)]
    pub(super) fn open(&self) -> &[AtomicUsize] {
        &self.open
    }

    /// Whether all uses are on the stream of this handle.
    #[inline(always)]
    pub(super) fn is_solo(&self, handle: usize) -> bool {
        self.open[0].load(Acquire) == handle
    }

    /// Whether the stream of this handle may read without more ado.
    #[inline(always)]
    pub(super) fn may_read(&self, handle: usize) -> bool {
        self.is_solo(handle) || self.is_reader(handle)
    }

    #[inline(never)]
    fn is_reader(&self, handle: usize) -> bool {
        self.open[1..].iter().any(|r| r.load(Acquire) == handle)
    }

    /// Makes the stream wait for what it must, and notes the use. Returns whether it had to be
    /// noted.
    ///
    /// The use is noted before it is enqueued: whoever conflicts with it comes only after the
    /// borrow has ended under which it is enqueued. If a wait fails, nothing is noted.
    pub(super) fn enter<L: Launching<User = U>>(
        &self,
        launching: &L,
        access: &Access,
        bytes: usize,
    ) -> Result<bool, L::Error> {
        let handle = launching.handle();
        let mut order = self.lock();
        // The look without the lock may have been at the other handle of the legacy stream.
        if handle.is_some_and(|h| self.is_solo(h) || !access.writes && self.may_read(h)) {
            return Ok(false);
        }
        let by = launching.user();
        for user in order.before(by.id(), access) {
            launching.wait_for(user)?;
        }
        if access.writes {
            let last = order.write(by, access, bytes);
            self.see_all(&mut order);
            if let (true, Some(handle)) = (last, handle) {
                self.open[0].store(handle, Release);
            }
            return Ok(true);
        }
        let [first, readers @ ..] = &self.open;
        let solo = first.load(Acquire);
        if solo != NONE {
            order.keep_reader(bytes);
            readers[0].store(solo, Release);
            first.store(NONE, Release);
        }
        let free = readers.iter().find(|r| r.load(Acquire) == NONE);
        let may_hide = handle.is_some() && free.is_some();
        if order.read(by, access, bytes, may_hide)
            && let (Some(free), Some(handle)) = (free, handle)
        {
            free.store(handle, Release);
        }
        Ok(true)
    }

    /// From now on each use is noted with its range. For an allocation that nobody else uses now,
    /// before its parts are.
    pub(super) fn split(&self) {
        self.see_all(&mut self.lock());
    }

    /// What to do with the only user, if there is one and it is a stream.
    pub(super) fn only(&self) -> Option<U> {
        self.lock().only().cloned()
    }

    fn see_all(&self, order: &mut Order<U>) {
        for open in &self.open {
            open.store(NONE, Release);
        }
        order.see_all();
    }

    fn lock(&self) -> MutexGuard<'_, Order<U>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
