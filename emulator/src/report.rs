//! What was found wrong, in words.

use std::fmt;

use crate::exec::Fault;

/// What kind of mistake a [`Report`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportKind {
    /// A kernel was stopped; [`Report::fault`] has the details.
    Fault,
    /// Two operations touch the same memory and nothing puts them in an order.
    Conflict,
    /// Memory was used by an operation that nothing puts behind its allocation.
    UseBeforeAllocation,
    /// Memory was used after it was freed, or by an operation that nothing puts before the free.
    UseAfterFree,
    /// A launch was refused, and nothing ran.
    InvalidLaunch,
    /// A module was refused.
    InvalidImage,
    /// An argument of a driver function was refused.
    InvalidArgument,
    /// A kernel needs an instruction that the emulator does not know; nothing ran.
    Unsupported,
    /// A failure that the test asked for.
    Injected,
    /// A fault of the emulator itself.
    Internal,
}

/// One mistake, as it is written to stderr when it is found.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), gridcall_emulator::InstallError> {
/// let device = gridcall_emulator::Device::fresh()?;
/// for report in device.take_reports() {
///     println!("{report}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What kind of mistake.
    pub kind: ReportKind,
    /// The device it happened on.
    pub device: usize,
    /// The result code the driver answered with, if it did.
    pub code: Option<u32>,
    /// The kernel that was stopped or refused.
    pub kernel: Option<String>,
    /// Why and where a kernel was stopped.
    pub fault: Option<Box<Fault>>,
    /// What happened, in words.
    pub message: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(code) = self.code {
            write!(f, " ({})", crate::driver::codes::Code(code).name())?;
        }
        Ok(())
    }
}
