#![doc = include_str!("../README.md")]

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
