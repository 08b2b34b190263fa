//! Lets one thread at a time enqueue what uses the symbols of a context.
//!
//! Arrays are borrowed while a launch waits for their last uses, is enqueued and noted. Nobody
//! borrows a symbol, so that what happens in between on another thread must be kept away otherwise.
//! There is one gate for a context, whatever the number of symbols: a thread that is within enters
//! again, and never waits for another gate.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Whether a thread is within.
    taken: Mutex<bool>,
    freed: Condvar,
    /// The thread that is within, or 0.
    owner: AtomicUsize,
    /// How often it has entered: what it entered first it may leave first, and is within until the last.
    depth: AtomicUsize,
}

/// Within the gate, until dropped. Stays on its thread.
#[derive(Debug)]
pub(super) struct Entered {
    gate: Arc<Gate>,
    thread: std::marker::PhantomData<*mut ()>,
}

impl Gate {
    /// The gate of a context, by its handle.
    pub(super) fn of(context: usize) -> Arc<Gate> {
        static GATES: Mutex<BTreeMap<usize, Arc<Gate>>> = Mutex::new(BTreeMap::new());
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(context).or_default().clone()
    }

    pub(super) fn enter(self: &Arc<Gate>) -> Entered {
        let thread = thread_number();
        if self.owner.load(Relaxed) != thread {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            while *taken {
                let waited = self.freed.wait(taken);
                taken = waited.unwrap_or_else(PoisonError::into_inner);
            }
            *taken = true;
            self.owner.store(thread, Relaxed);
        }
        self.depth.fetch_add(1, Relaxed);
        Entered {
            gate: self.clone(),
            thread: std::marker::PhantomData,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let gate = &self.gate;
        if gate.depth.fetch_sub(1, Relaxed) == 1 {
            gate.owner.store(0, Relaxed);
            *gate.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
            gate.freed.notify_one();
        }
    }
}

/// A number from 1 on that no other thread has or had.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_within() {
        let gate = Gate::of(usize::MAX);
        let within = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _outer = gate.enter();
                        assert_eq!(within.fetch_add(1, Relaxed), 0);
                        drop(gate.enter());
                        assert_eq!(within.fetch_sub(1, Relaxed), 1);
                    }
                });
            }
        });
        assert!(!*gate.taken.lock().unwrap());
    }

    #[test]
    fn a_thread_is_within_until_it_has_left_as_often_as_it_entered() {
        let gate = Gate::of(usize::MAX - 1);
        let (first, second) = (gate.enter(), gate.enter());
        drop(first);
        assert!(*gate.taken.lock().unwrap());
        drop(second);
        assert!(!*gate.taken.lock().unwrap());
    }

    #[test]
    fn a_context_has_one_gate() {
        assert!(Arc::ptr_eq(&Gate::of(1), &Gate::of(1)));
        assert!(!Arc::ptr_eq(&Gate::of(1), &Gate::of(2)));
    }
}
