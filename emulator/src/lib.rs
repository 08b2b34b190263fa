//! Runs CUDA kernels on the host: the driver API over a PTX interpreter.

mod clock;
mod config;
mod device;
mod driver;
#[doc(hidden)]
pub mod exec;
mod failure;
mod install;
mod memory;
mod report;
mod simd;
mod unsupported;

pub use config::{Config, Order};
pub use device::{Device, leaks, reports, reset, take_reports};
pub use exec::{Coverage, Fault, FaultKind, LowerError, SourceLine, TextPosition};
pub use failure::Failure;
pub use install::{InstallError, install, install_with, is_installed};
pub use memory::Leak;
pub use report::{Report, ReportKind};
pub use unsupported::{UnsupportedInstruction, unsupported};
