//! What the tests share: a device of their own, and raw calls of the driver.

#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "each test file uses what it needs"
)]

pub(crate) mod graph;

use std::sync::Arc;

use cudarc::driver::CudaContext;
use gridcall_emulator::{Config, Device, ReportKind};

/// Calls a function of the driver and gives its code.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the tests pass pointers to variables of theirs, and handles that the driver gave
        // them or that it is to refuse.
        let code = unsafe { cudarc::driver::sys::$name($($argument),*) };
        code as u32
    }};
}
pub(crate) use cu;

/// A device of one's own with its primary context current. However slow the machine, nothing runs on it
/// that nobody waits for.
pub(crate) fn fresh() -> (Device, Arc<CudaContext>) {
    with(&Config::default().idle(std::time::Duration::from_secs(600)))
}

pub(crate) fn with(config: &Config) -> (Device, Arc<CudaContext>) {
    let device = Device::with(config).unwrap();
    let context = CudaContext::new(device.ordinal()).unwrap();
    (device, context)
}

/// The ordinal as the driver takes it.
pub(crate) fn ordinal(device: &Device) -> i32 {
    i32::try_from(device.ordinal()).unwrap()
}

/// The kinds of mistakes reported so far.
pub(crate) fn kinds(device: &Device) -> Vec<ReportKind> {
    device.reports().iter().map(|report| report.kind).collect()
}

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_VALUE: u32 = 1;
