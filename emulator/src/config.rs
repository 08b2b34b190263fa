//! What the emulated devices are, and in which order their work runs.

use std::env;
use std::time::Duration;

/// In which order enqueued work runs, among the orders CUDA allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As late as allowed: whoever waits runs only what it waits for, and the rest when the host has
    /// gone quiet. A missing wait shows as an old value.
    #[default]
    Lazy,
    /// At once, as it is enqueued.
    Eager,
    /// An order drawn from the seed, for streams, blocks and warps.
    Random(u64),
}

impl Order {
    /// Reads `lazy`, `eager` or `random:<seed>`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gridcall_emulator::Order;
    /// assert_eq!(Order::parse("random:7"), Some(Order::Random(7)));
    /// assert_eq!(Order::parse("soon"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "lazy" => Some(Self::Lazy),
            "eager" => Some(Self::Eager),
            text => text.strip_prefix("random:")?.parse().ok().map(Self::Random),
        }
    }
}

/// What the emulated devices are. Begins as an H200 with 8 GiB.
///
/// # Examples
///
/// ```
/// use gridcall_emulator::{Config, Device, Order};
///
/// # fn main() -> Result<(), gridcall_emulator::InstallError> {
/// let config = Config::default()
///     .compute_capability(7, 5)
///     .multiprocessors(4)
///     .memory_bytes(1 << 20)
///     .order(Order::Random(1));
/// let device = Device::with(&config)?;
/// assert!(device.reports().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) devices: u32,
    pub(crate) compute_capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) order: Order,
    pub(crate) step_budget: u64,
    pub(crate) memory_pools: bool,
    pub(crate) check_global_races: bool,
    pub(crate) idle: Duration,
    pub(crate) coverage: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            devices: 1,
            compute_capability: (9, 0),
            multiprocessors: 132,
            memory_bytes: 8 << 30,
            order: Order::Lazy,
            step_budget: 4_000_000_000,
            memory_pools: true,
            check_global_races: false,
            idle: Duration::from_millis(20),
            coverage: false,
        }
    }
}

impl Config {
    /// What the environment says: `GRIDCALL_EMULATED_DEVICES` is how many devices there are, and
    /// `GRIDCALL_EMULATOR_ORDER` their [`Order`]. What is not set, or cannot be read, is as by
    /// default; the second is said on stderr.
    ///
    /// # Examples
    ///
    /// ```
    /// let config = gridcall_emulator::Config::from_env();
    /// # let _ = config;
    /// ```
    #[must_use]
    pub fn from_env() -> Self {
        let mut config = Self::default();
        if let Some(devices) = read("GRIDCALL_EMULATED_DEVICES", "a number", |text| {
            text.trim()
                .parse()
                .ok()
                .filter(|devices| *devices <= MOST_DEVICES)
        }) {
            config.devices = devices;
        }
        if let Some(order) = read(
            "GRIDCALL_EMULATOR_ORDER",
            "`lazy`, `eager` or `random:<seed>`",
            Order::parse,
        ) {
            config.order = order;
        }
        config
    }

    /// How many devices there are; of use with [`install_with`](crate::install_with) only.
    #[must_use]
    pub fn devices(mut self, devices: u32) -> Self {
        self.devices = devices.min(MOST_DEVICES);
        self
    }

    /// The compute capability, 9.0 by default.
    #[must_use]
    pub fn compute_capability(mut self, major: u32, minor: u32) -> Self {
        self.compute_capability = (major, minor);
        self
    }

    /// How many multiprocessors a device has, 132 by default; at least one.
    #[must_use]
    pub fn multiprocessors(mut self, multiprocessors: u32) -> Self {
        self.multiprocessors = multiprocessors.max(1);
        self
    }

    /// How much memory a device has, 8 GiB by default. The host gives it as it is written to.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// In which order work runs, [`Order::Lazy`] by default.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many instructions of warps a launch may run before it is stopped with
    /// `CUDA_ERROR_LAUNCH_TIMEOUT`; 0 for no limit. 4,000,000,000 by default, some minutes.
    #[must_use]
    pub fn step_budget(mut self, steps: u64) -> Self {
        self.step_budget = steps;
        self
    }

    /// Whether the devices have memory pools; cudarc allocates by `cuMemAlloc` where they do not.
    #[must_use]
    pub fn memory_pools(mut self, supported: bool) -> Self {
        self.memory_pools = supported;
        self
    }

    /// Whether two blocks that touch the same global memory unordered stop the kernel. Off by
    /// default: it costs time, and it is sometimes meant.
    #[must_use]
    pub fn check_global_races(mut self, check: bool) -> Self {
        self.check_global_races = check;
        self
    }

    /// Whether to count which lines of kernels run, for [`Device::coverage`](crate::Device::coverage).
    #[must_use]
    pub fn coverage(mut self, count: bool) -> Self {
        self.coverage = count;
        self
    }

    /// How long the host must make no call before work that nobody waits for runs; 20 ms by default.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }
}

/// More devices than any machine has.
const MOST_DEVICES: u32 = 64;

fn read<T>(name: &str, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let text = env::var(name).ok()?;
    let value = parse(&text);
    if value.is_none() {
        eprintln!("gridcall-emulator: `{name}={text}` is ignored, expected {expected}");
    }
    value
}
