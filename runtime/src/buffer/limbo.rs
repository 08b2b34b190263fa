//! Memory that could not be freed when it was dropped, since a stream that used it was being
//! captured into a graph. It is tried again whenever a buffer is made or dropped.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::memory::Memory;

static PARKED: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// How many are parked, to know of none without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Keeps memory that is being dropped for later.
pub(super) fn park(memory: Memory) {
    let mut parked = PARKED.lock().unwrap_or_else(PoisonError::into_inner);
    parked.push(memory);
    COUNT.store(parked.len(), Relaxed);
}

/// Frees what can be freed now.
pub(super) fn retry() {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let parked = {
        let mut parked = PARKED.lock().unwrap_or_else(PoisonError::into_inner);
        COUNT.store(0, Relaxed);
        std::mem::take(&mut *parked)
    };
    for mut memory in parked {
        memory.discard();
    }
}
