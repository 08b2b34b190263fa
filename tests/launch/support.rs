//! The device under test, kernels that wait for the host, and tests in a process of their own.

use std::{
    env,
    io::{self, Write as _},
    ops::Deref,
    process::Command,
    sync::{
        Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gridcall::{
    BorrowedView, LoadError, Place,
    cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, sys},
};

use crate::kernels::spin_flag;

/// Device 0 for one test, or the end of the test where there is no device.
///
/// `device!(alone)` waits until no other test uses the device: for kernels that wait for the host,
/// behind which another test's call may queue.
macro_rules! device {
    () => {
        device!(@ take_shared)
    };
    (alone) => {
        device!(@ take_alone)
    };
    (@ $take:ident) => {
        match $crate::support::Device::$take(this_test!()) {
            Some(device) => device,
            None => return,
        }
    };
}

/// The path of the test that this stands in, as the test runner calls it.
macro_rules! this_test {
    () => {
        $crate::support::test_of(std::any::type_name_of_val(&|| ()))
    };
}

/// Runs the block in a process of its own, with these environment variables: for what breaks a
/// context for good, and for what is read from the environment once. Nobody else uses the device
/// meanwhile: where a kernel fails, a GPU disturbs other processes too.
///
/// `without_device` lets it run where there is none.
macro_rules! in_child {
    (without_device $variables:expr, $body:block) => {
        if $crate::support::is_child(this_test!()) {
            $body
        } else {
            $crate::support::run_child(this_test!(), &$variables);
        }
    };
    ($variables:expr, $body:block) => {
        if $crate::support::is_child(this_test!()) {
            $body
        } else {
            let _device = device!(alone);
            $crate::support::run_child(this_test!(), &$variables);
        }
    };
}

/// So many cycles take a tenth of a second or less: long beside all that a test enqueues, so that
/// what is not ordered goes wrong. What is ordered goes right however long they take.
pub(crate) const LONG: i64 = 200_000_000;

/// The device of one test: a context object that no other test has, since cudarc keeps stored
/// errors and the number of streams in it.
pub(crate) struct Device {
    context: Arc<CudaContext>,
    _turn: Turn,
}

/// Tests share the device, or have it alone.
#[expect(dead_code, reason = "the guards are held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

static TURNS: RwLock<()> = RwLock::new(());

impl Device {
    pub(crate) fn take_shared(test: &str) -> Option<Device> {
        let context = open_or_say(test)?;
        let turn = TURNS.read().unwrap_or_else(PoisonError::into_inner);
        Some(Device {
            context,
            _turn: Turn::Shared(turn),
        })
    }

    pub(crate) fn take_alone(test: &str) -> Option<Device> {
        let context = open_or_say(test)?;
        let turn = TURNS.write().unwrap_or_else(PoisonError::into_inner);
        Some(Device {
            context,
            _turn: Turn::Alone(turn),
        })
    }
}

impl Deref for Device {
    type Target = Arc<CudaContext>;

    fn deref(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

fn open_or_say(test: &str) -> Option<Arc<CudaContext>> {
    match open() {
        Ok(context) => Some(context),
        Err(error) => {
            assert!(!must_have_device(), "a device is required: {error}");
            say(&format!("{test}: not run, for want of a device: {error}"));
            None
        }
    }
}

/// A context object of device 0's primary context.
fn open() -> Result<Arc<CudaContext>, LoadError> {
    // Which driver it is, is decided here. Held to the end, so that tests do not set the device
    // up and shut it down one after another.
    static FIRST: OnceLock<Arc<CudaContext>> = OnceLock::new();
    if FIRST.get().is_none() {
        let _ = FIRST.set(gridcall::device(0)?);
    }
    Ok(CudaContext::new(0).expect("the device was opened before"))
}

/// Device 1, or nothing where there is none.
pub(crate) fn second_device(test: &str) -> Option<Arc<CudaContext>> {
    match CudaContext::device_count() {
        Ok(count) if count > 1 => Some(CudaContext::new(1).unwrap()),
        _ => {
            say(&format!("{test}: not run, for want of a second device"));
            None
        }
    }
}

/// `GRIDCALL_TEST_REQUIRE_DEVICE=1` makes a missing device a failure.
pub(crate) fn must_have_device() -> bool {
    env::var_os("GRIDCALL_TEST_REQUIRE_DEVICE").is_some_and(|value| value == "1")
}

/// Prints a line that the test runner does not hold back.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// `driver::absent` of `launch::driver::absent::{{closure}}`.
pub(crate) fn test_of(closure: &'static str) -> &'static str {
    let test = closure.split("::{{closure}}").next().unwrap_or(closure);
    test.split_once("::").map_or(test, |(_, path)| path)
}

const CHILD: &str = "GRIDCALL_TEST_CHILD";

/// Whether this process was started for the test.
pub(crate) fn is_child(test: &str) -> bool {
    env::var(CHILD).is_ok_and(|child| child == test)
}

/// Starts a process that runs the test alone, and fails if it fails there.
pub(crate) fn run_child(test: &str, variables: &[(&str, &str)]) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs(variables.iter().copied())
        .env(CHILD, test)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "the child ended with {}\n{stdout}\n{stderr}",
        output.status
    );
}

/// A word that the host writes and a kernel waits for.
pub(crate) struct Latch {
    word: *mut i32,
    held: Option<Arc<CudaStream>>,
    watch: Option<Watch>,
    _memory: PinnedHostSlice<i32>,
}

/// Lets a kernel go that nobody let go in time, as where a launch returns only when the kernel ends:
/// the test fails then, and does not hang.
struct Watch {
    over: Sender<()>,
    thread: JoinHandle<()>,
}

impl Latch {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Latch {
        // Each launch would return only when its kernel has ended, and this one's waits for the host.
        assert!(
            std::env::var_os("GRIDCALL_SYNC").is_none_or(|value| value != "1"),
            "this test holds a kernel back, which GRIDCALL_SYNC=1 would wait for: unset it for the tests"
        );
        // Loading may wait for kernels that run, so it comes first.
        spin_flag::load(context).unwrap();
        // SAFETY: it is written before it is read.
        let memory =
            unsafe { context.alloc_pinned_with_flags::<i32>(1, sys::CU_MEMHOSTALLOC_DEVICEMAP) };
        let mut memory = memory.unwrap();
        let word = memory.as_mut_ptr().unwrap();
        // SAFETY: the word is allocated, and no kernel knows it yet.
        unsafe { word.write_volatile(0) };
        Latch {
            word,
            held: None,
            watch: None,
            _memory: memory,
        }
    }

    /// Lets a kernel that writes `seen` run on `stream` until the latch is released.
    pub(crate) fn hold(&mut self, stream: &Arc<CudaStream>, seen: &mut CudaSlice<i32>) {
        // SAFETY: pinned memory has one address for host and devices and lives as long as the
        // latch, whose drop waits for the kernel; nothing but the kernel reads it.
        let flag = unsafe { BorrowedView::<i32>::new(self.word as u64, 1, Place::Everywhere) };
        self.held = Some(stream.clone());
        self.watch = Some(Watch::start(self.word as usize));
        // SAFETY: one thread writes `seen[0]`; the host releases the kernel at the latest when
        // the latch is dropped.
        unsafe { spin_flag(stream, (1, 1), &flag, seen) }.unwrap();
    }

    /// Lets the kernel go.
    pub(crate) fn release(&self) {
        // SAFETY: the word lives as long as the latch; the kernel reads it as volatile.
        unsafe { self.word.write_volatile(1) };
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        self.release();
        if let Some(stream) = self.held.take() {
            let _ = stream.synchronize();
        }
        if let Some(Watch { over, thread }) = self.watch.take() {
            drop(over);
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn start(word: usize) -> Watch {
        let (over, rest) = mpsc::channel();
        let thread = thread::spawn(move || {
            if let Err(RecvTimeoutError::Timeout) = rest.recv_timeout(Duration::from_secs(60)) {
                // SAFETY: the latch, which owns the word, joins this thread when it is dropped.
                unsafe { (word as *mut i32).write_volatile(1) };
            }
        });
        Watch { over, thread }
    }
}

/// Whether all that is enqueued on the stream ends, with time enough for any machine.
pub(crate) fn ends(stream: &CudaStream) -> bool {
    let event = stream.record_event(None).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !event.try_is_complete().unwrap() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Whether something on the stream has not ended yet.
pub(crate) fn is_busy(stream: &CudaStream) -> bool {
    let event = stream.record_event(None).unwrap();
    !event.try_is_complete().unwrap()
}

/// 0, 1, 2, ...
pub(crate) fn ramp(n: u16) -> Vec<f32> {
    (0..n).map(f32::from).collect()
}
