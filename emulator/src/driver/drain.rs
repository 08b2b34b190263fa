//! The thread that runs what nobody waits for, once the host has gone quiet: a kernel that waits for a
//! flag the host sets, or a host that looks at a flag a kernel sets, gets on.

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{Call, Driver, lock};

static THREAD: OnceLock<Thread> = OnceLock::new();
static ASLEEP: AtomicBool = AtomicBool::new(true);

/// Something is pending.
pub(crate) fn wake() {
    if ASLEEP.swap(false, Ordering::AcqRel)
        && let Some(thread) = THREAD.get()
    {
        thread.unpark();
    }
}

/// Starts the thread; a system that gives none leaves the work to those who wait.
pub(crate) fn start() {
    let started = thread::Builder::new()
        .name("gridcall-emulator".into())
        .spawn(drain);
    if let Ok(handle) = started {
        let _ = THREAD.set(handle.thread().clone());
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(2);

fn drain() {
    loop {
        let pending = lock().groups.values().any(|group| group.pending > 0);
        if !pending {
            ASLEEP.store(true, Ordering::Release);
            // A wake that came before the store is caught by looking again.
            if !lock().groups.values().any(|group| group.pending > 0) {
                thread::park_timeout(Duration::from_secs(1));
            }
            continue;
        }
        // A failure of the emulator itself ends a step, but not this thread.
        let progressed = catch_unwind(|| {
            let mut call = Call::internal();
            let mut progressed = false;
            for group in call.quiet() {
                progressed |= call.run_anything(group);
            }
            progressed
        });
        if progressed.unwrap_or(false) {
            thread::yield_now();
        } else {
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Driver {
    /// The groups with pending work whose host has not called for a while.
    fn quiet(&self) -> Vec<u64> {
        let now = Instant::now();
        self.groups
            .iter()
            .filter(|(id, group)| {
                let idle = self
                    .devices
                    .values()
                    .find(|device| device.group == **id)
                    .map_or(Duration::ZERO, |device| device.config.idle);
                group.pending > 0 && group.waiting == 0 && now.duration_since(group.called) >= idle
            })
            .map(|(id, _)| *id)
            .collect()
    }

    /// The host called.
    pub(crate) fn note_call(&mut self, group: u64) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.called = Instant::now();
        }
    }
}
