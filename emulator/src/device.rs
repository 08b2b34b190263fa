//! Devices of tests: fresh ones, and what is asked of them.

use crate::config::Config;
use crate::driver::{self, lock};
use crate::exec::Coverage;
use crate::failure::Failure;
use crate::install::{InstallError, install};
use crate::memory::Leak;
use crate::report::Report;

/// An emulated device, as a test looks at it.
///
/// Tests of one process share the driver, and a kernel that faults leaves its context in error for good.
/// A test that takes a device of its own is apart from all others: its contexts, streams, memory, order
/// and reports are its own, and all go with it when it is dropped.
///
/// # Examples
///
/// ```
/// use cudarc::driver::CudaContext;
/// use gridcall_emulator::Device;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::fresh()?;
/// let context = CudaContext::new(device.ordinal())?;
/// let stream = context.default_stream();
/// let data = stream.clone_htod(&[1.0f32, 2.0])?;
/// assert_eq!(stream.clone_dtoh(&data)?, [1.0, 2.0]);
/// assert!(device.reports().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Device {
    ordinal: u32,
    fresh: bool,
}

impl Device {
    /// A device of its own, as by default. Installs the emulator if it is not.
    ///
    /// Its ordinal works wherever one is asked for, but is not counted by `cuDeviceGetCount`.
    ///
    /// # Errors
    ///
    /// As [`install`](crate::install()).
    ///
    /// # Examples
    ///
    /// ```
    /// let device = gridcall_emulator::Device::fresh()?;
    /// # Ok::<(), gridcall_emulator::InstallError>(())
    /// ```
    pub fn fresh() -> Result<Self, InstallError> {
        Self::with(&Config::from_env())
    }

    /// A device of its own, as configured. Installs the emulator if it is not.
    ///
    /// # Errors
    ///
    /// As [`install`](crate::install()).
    ///
    /// # Examples
    ///
    /// ```
    /// use gridcall_emulator::{Config, Device};
    /// let device = Device::with(&Config::default().compute_capability(8, 6))?;
    /// # Ok::<(), gridcall_emulator::InstallError>(())
    /// ```
    pub fn with(config: &Config) -> Result<Self, InstallError> {
        install()?;
        let ordinal = lock().make_fresh_device(config.clone());
        Ok(Self {
            ordinal,
            fresh: true,
        })
    }

    /// One of the devices that the whole process sees; `None` if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// gridcall_emulator::install()?;
    /// assert!(gridcall_emulator::Device::at(0).is_some());
    /// assert!(gridcall_emulator::Device::at(99).is_none());
    /// # Ok::<(), gridcall_emulator::InstallError>(())
    /// ```
    #[must_use]
    pub fn at(ordinal: usize) -> Option<Self> {
        let ordinal = u32::try_from(ordinal).ok()?;
        let driver = lock();
        (ordinal < driver.config.devices && driver.devices.contains_key(&ordinal)).then_some(Self {
            ordinal,
            fresh: false,
        })
    }

    /// The ordinal, for `CudaContext::new` or `cuDeviceGet`.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.ordinal as usize
    }

    /// What was found wrong so far.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        let mine = |report: &&Report| report.device == self.ordinal();
        lock().reports.iter().filter(mine).cloned().collect()
    }

    /// What was found wrong since the last time.
    #[must_use = "what is taken is not reported again"]
    pub fn take_reports(&self) -> Vec<Report> {
        let ordinal = self.ordinal();
        lock().take_reports(|report| report.device == ordinal)
    }

    /// What was allocated and not freed.
    ///
    /// # Examples
    ///
    /// ```
    /// use cudarc::driver::CudaContext;
    /// use gridcall_emulator::Device;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::fresh()?;
    /// let context = CudaContext::new(device.ordinal())?;
    /// let stream = context.default_stream();
    /// let data = stream.alloc_zeros::<u8>(100)?;
    /// stream.synchronize()?;
    /// assert_eq!(device.leaks()[0].size, 100);
    /// drop(data);
    /// stream.synchronize()?;
    /// assert!(device.leaks().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn leaks(&self) -> Vec<Leak> {
        lock().memory.leaks(self.ordinal)
    }

    /// Which lines of the kernels launched so far have run, where [`Config::coverage`] asks for it. A
    /// module without source lines goes under the name of its first kernel, as in `saxpy.ptx`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gridcall_emulator::{Config, Device};
    ///
    /// # fn main() -> Result<(), gridcall_emulator::InstallError> {
    /// let device = Device::with(&Config::default().coverage(true))?;
    /// // ... launch kernels, then write this to a file for `genhtml` or an editor:
    /// println!("{}", device.coverage().lcov());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        lock()
            .devices
            .get(&self.ordinal)
            .map(|device| device.coverage.clone())
            .unwrap_or_default()
    }

    /// Lets something fail.
    pub fn fail(&self, failure: Failure) {
        if let Some(device) = lock().devices.get_mut(&self.ordinal) {
            device.failures.add(failure);
        }
    }

    /// Takes everything off the device: contexts, streams, memory, errors and reports, as if it had
    /// never been used. Handles of before are invalid.
    pub fn reset(&self) {
        lock().reset_device(self.ordinal, true);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.fresh {
            lock().reset_device(self.ordinal, false);
        }
    }
}

/// What was found wrong so far, on all devices.
///
/// # Examples
///
/// ```
/// for report in gridcall_emulator::reports() {
///     println!("{report}");
/// }
/// ```
#[must_use]
pub fn reports() -> Vec<Report> {
    lock().reports.clone()
}

/// What was found wrong since the last time, on all devices. Where tests run in parallel, ask the
/// [`Device`] of one's own instead.
///
/// # Examples
///
/// ```
/// let reports = gridcall_emulator::take_reports();
/// assert!(reports.is_empty());
/// ```
#[must_use = "what is taken is not reported again"]
pub fn take_reports() -> Vec<Report> {
    lock().take_reports(|_| true)
}

/// What was allocated on the devices that the process sees and not freed.
///
/// # Examples
///
/// ```
/// assert!(gridcall_emulator::leaks().is_empty());
/// ```
#[must_use]
pub fn leaks() -> Vec<Leak> {
    let driver = lock();
    (0..driver.config.devices)
        .flat_map(|ordinal| driver.memory.leaks(ordinal))
        .collect()
}

/// Resets all devices that the process sees, as [`Device::reset`] does. Whoever uses them at the same time
/// finds their handles invalid: tests that run in parallel take devices of their own.
///
/// # Examples
///
/// ```
/// gridcall_emulator::install()?;
/// gridcall_emulator::reset();
/// # Ok::<(), gridcall_emulator::InstallError>(())
/// ```
pub fn reset() {
    let mut driver: std::sync::MutexGuard<'static, driver::Driver> = lock();
    for ordinal in 0..driver.config.devices {
        driver.reset_device(ordinal, true);
    }
}
