//! Runs CUDA kernels on the host: the driver API over a PTX interpreter.

mod clock;
mod config;
mod device;
mod driver;
pub mod exec;
mod failure;
mod install;
mod memory;
mod report;
mod simd;

pub use config::{Config, Order};
pub use device::{Device, leaks, reports, reset, take_reports};
pub use failure::Failure;
pub use install::{InstallError, install, install_with, is_installed};
pub use memory::Leak;
pub use report::{Report, ReportKind};
