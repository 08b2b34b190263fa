//! The driver: what its functions work on, and the lock around it.
//!
//! Each file holds one kind of object and the functions of the driver that make and use it.

pub(crate) mod allocate;
pub(crate) mod array;
pub(crate) mod border;
pub(crate) mod capture;
mod child;
pub(crate) mod codes;
pub(crate) mod condition;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod drain;
pub(crate) mod entry;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod group;
pub(crate) mod launch;
#[cfg(test)]
mod layout;
pub(crate) mod library;
pub(crate) mod link;
pub(crate) mod module;
pub(crate) mod node;
pub(crate) mod object;
pub(crate) mod occupancy;
pub(crate) mod pointer;
pub(crate) mod pool;
mod preference;
pub(crate) mod run;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod tensor_map;
pub(crate) mod user_object;
pub(crate) mod work;

/// The functions of the driver by name.
mod api {
    pub(crate) use super::{
        allocate::*, array::*, capture::*, child::*, codes::*, condition::*, context::*, copy::*,
        device::*, event::*, function::*, graph::*, launch::*, library::*, link::*, module::*,
        node::*, object::*, occupancy::*, pointer::*, pool::*, stream::*, table::*, tensor_map::*,
        user_object::*,
    };
}

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::config::Config;
use crate::memory::Memory;
use crate::report::{Report, ReportKind};
use array::Array;
use codes::{Answer, Code};
use context::Context;
use device::Device;
use event::Event;
use function::Function;
use graph::{Exec, Graph};
use group::Group;
use library::Library;
use link::Link;
use module::Module;
use pool::Pool;
use stream::Stream;
use user_object::UserObject;
use work::Op;

pub(crate) use condition::Values;
pub(crate) use context::Reach;
pub(crate) use object::Objects;
pub(crate) use work::OpInfo;

/// The version of CUDA that the driver claims to be of.
pub(crate) const VERSION: i32 = 13040;

/// All state of the driver.
pub(crate) struct Driver {
    pub(crate) initialised: bool,
    pub(crate) config: Config,
    pub(crate) memory: Memory,
    pub(crate) devices: BTreeMap<u32, Device>,
    pub(crate) contexts: HashMap<usize, Context>,
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) modules: HashMap<usize, Module>,
    pub(crate) functions: HashMap<usize, Function>,
    pub(crate) libraries: HashMap<usize, Library>,
    pub(crate) links: HashMap<usize, Link>,
    pub(crate) pools: HashMap<usize, Pool>,
    pub(crate) arrays: HashMap<usize, Array>,
    pub(crate) objects: Objects,
    pub(crate) graphs: HashMap<usize, Graph>,
    pub(crate) execs: HashMap<usize, Exec>,
    pub(crate) captures: HashMap<u64, capture::Capture>,
    pub(crate) user_objects: HashMap<usize, UserObject>,
    pub(crate) ops: BTreeMap<u64, Op>,
    pub(crate) groups: BTreeMap<u64, Group>,
    pub(crate) reports: Vec<Report>,
    said: HashSet<String>,
    next: u64,
}

impl Driver {
    fn new() -> Self {
        Self {
            initialised: false,
            config: Config::default(),
            memory: Memory::new(),
            devices: BTreeMap::new(),
            contexts: HashMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            libraries: HashMap::new(),
            links: HashMap::new(),
            pools: HashMap::new(),
            arrays: HashMap::new(),
            objects: Objects::default(),
            graphs: HashMap::new(),
            execs: HashMap::new(),
            captures: HashMap::new(),
            user_objects: HashMap::new(),
            ops: BTreeMap::new(),
            groups: BTreeMap::new(),
            reports: Vec::new(),
            said: HashSet::new(),
            next: 1,
        }
    }

    /// A number that was not there before.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A handle that was not there before: it looks like a pointer, but is none.
    pub(crate) fn new_handle(&mut self) -> usize {
        let id = self.new_id();
        usize::try_from(id).unwrap_or(usize::MAX / 64) * 64 + 0x7000_0000
    }

    /// Keeps a report and says it, unless the same was said before.
    pub(crate) fn report(&mut self, report: Report) {
        let words = report.to_string();
        if self.reports.len() >= MOST_REPORTS
            || !self.said.insert(format!("{} {words}", report.device))
        {
            return;
        }
        eprintln!("gridcall-emulator: {words}");
        self.reports.push(report);
    }

    /// Reports a call that is refused, and gives the code back.
    pub(crate) fn refuse(
        &mut self,
        kind: ReportKind,
        device: u32,
        code: Code,
        message: impl Into<String>,
    ) -> Code {
        self.report(Report {
            kind,
            device: device as usize,
            code: Some(code.0),
            kernel: None,
            fault: None,
            message: message.into(),
        });
        code
    }

    pub(crate) fn take_reports(&mut self, wanted: impl Fn(&Report) -> bool) -> Vec<Report> {
        let (taken, kept) = std::mem::take(&mut self.reports)
            .into_iter()
            .partition(wanted);
        self.reports = kept;
        self.said = self
            .reports
            .iter()
            .map(|report| format!("{} {report}", report.device))
            .collect();
        taken
    }

    pub(crate) fn note_panic(&mut self, function: &str) {
        self.report(Report {
            kind: ReportKind::Internal,
            device: 0,
            code: Some(Code::UNKNOWN.0),
            kernel: None,
            fault: None,
            message: format!(
                "the emulator failed in `{function}`: this is its own fault, please report it"
            ),
        });
    }
}

/// So many reports are kept at most.
const MOST_REPORTS: usize = 10_000;

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(|| Mutex::new(Driver::new()));
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Held by whoever gets the driver next: a mutex alone prefers a thread that gives it away and takes it
/// again, as one that runs a kernel does, to those that sleep for it.
static NEXT: Mutex<()> = Mutex::new(());
/// Told whenever an operation ended.
static ENDED: Condvar = Condvar::new();

/// Takes the lock.
pub(crate) fn lock() -> MutexGuard<'static, Driver> {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let guard = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    drop(next);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    guard
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// A call of a driver function: holds the lock, and gives it away where the user's code runs.
pub(crate) struct Call {
    guard: Option<MutexGuard<'static, Driver>>,
}

impl Call {
    /// Begins a call of the user's.
    pub(crate) fn begin(name: &'static str) -> Answer<Self> {
        let mut call = Self::internal();
        if IN_HOST_FUNCTION.get() {
            return Err(call.refuse(
                ReportKind::InvalidArgument,
                0,
                Code(800),
                format!("a host function on a stream calls `{name}`: host functions must not call the driver"),
            ));
        }
        Ok(call)
    }

    /// Takes the lock without a call of the user's.
    pub(crate) fn internal() -> Self {
        Self {
            guard: Some(lock()),
        }
    }

    /// Gives the lock away, runs the user's code, and takes the lock again.
    pub(crate) fn outside(&mut self, function: impl FnOnce()) {
        self.guard = None;
        let before = IN_HOST_FUNCTION.replace(true);
        function();
        IN_HOST_FUNCTION.set(before);
        self.guard = Some(lock());
    }

    /// Lets others have the lock if they want it.
    pub(crate) fn breathe(&mut self) {
        if WAITING.load(Ordering::Relaxed) > 0 {
            self.guard = None;
            std::thread::yield_now();
            self.guard = Some(lock());
        }
    }

    /// Gives the lock away for a while, or until an operation ends.
    pub(crate) fn pause(&mut self, most: std::time::Duration) {
        if let Some(guard) = self.guard.take() {
            let (guard, _) = ENDED
                .wait_timeout(guard, most)
                .unwrap_or_else(PoisonError::into_inner);
            self.guard = Some(guard);
        }
    }
}

impl Deref for Call {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        match &self.guard {
            Some(guard) => guard,
            None => {
                unreachable!("the lock is only away inside of `outside`, `breathe` and `pause`")
            }
        }
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut Driver {
        match &mut self.guard {
            Some(guard) => guard,
            None => {
                unreachable!("the lock is only away inside of `outside`, `breathe` and `pause`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::{NEXT, lock};

    /// As the thread does that runs a kernel, which waits for what the host does next.
    #[test]
    fn whoever_takes_the_lock_again_comes_after_those_that_wait() {
        static HAD_IT: AtomicBool = AtomicBool::new(false);
        let guard = lock();
        let other = thread::spawn(|| {
            let _guard = lock();
            HAD_IT.store(true, Ordering::Relaxed);
        });
        while NEXT.try_lock().is_ok() {
            thread::yield_now();
        }
        drop(guard);
        let _guard = lock();
        assert!(HAD_IT.load(Ordering::Relaxed));
        other.join().unwrap();
    }
}
