//! A kernel that cannot be loaded, or a device that cannot be opened.

use std::fmt;

use cudarc::driver::DriverError;

use super::{
    GeometryError, broken,
    releases::{isa, toolkit},
    where_from,
};
use crate::driver::DriverCode;

/// Why a kernel could not be loaded, or a device not be opened.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct LoadError(Box<LoadErrorKind>);

/// What a [`LoadError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// There is no driver library.
    #[error(
        "no CUDA driver found: `{library}` cannot be opened ({reason}); install the NVIDIA driver, or {}",
        OTHERWISE
    )]
    NoDriver {
        /// The library's file name.
        library: &'static str,
        /// The loader's words.
        reason: String,
    },
    /// The driver library lacks a function that every supported driver has.
    #[error("the CUDA driver is too old: it has no `{function}`; update the NVIDIA driver")]
    OldDriver {
        /// The function that is missing.
        function: &'static str,
    },
    /// The driver is there and cannot be used.
    #[error("the CUDA driver cannot be used: {code}{cure}")]
    DriverUnusable {
        /// The driver's answer to `cuInit`.
        code: DriverCode,
        /// What to do, if that is known; begins with a semicolon.
        cure: &'static str,
    },
    /// `GRIDCALL_DRIVER` is neither `cuda` nor `emulator`.
    #[error("GRIDCALL_DRIVER is `{choice}`: set it to `cuda`, to `emulator`, or not at all")]
    UnknownChoice {
        /// What it is.
        choice: String,
    },
    /// The emulator was asked for, and is not built in.
    #[error(
        "GRIDCALL_DRIVER asks for the emulator, which is not built in: turn on gridcall's feature `emulator`"
    )]
    NoEmulator,
    /// The emulator cannot take the driver's place.
    #[cfg(feature = "emulator")]
    #[error("{0}")]
    Emulator(gridcall_emulator::InstallError),
    /// There is no device of that number.
    #[error("there is no CUDA device {ordinal}: the driver counts {count}")]
    NoDevice {
        /// The device that was asked for, from 0.
        ordinal: usize,
        /// How many there are.
        count: u32,
    },
    /// An error of the past, stored in the context by a call that could not return it.
    #[error(
        "an earlier error is stored in the context: {0}; it is not of this call, and everything enqueued since is in doubt"
    )]
    Earlier(DriverError),
    /// The context is broken for good.
    #[error("{}", broken(*.0))]
    Broken(DriverCode),
    /// Loading would break the capture that the stream is in.
    #[error(
        "kernel `{kernel}` is not loaded yet, and its stream is being captured into a graph; load it before the capture, with `{kernel}::load(&ctx)`"
    )]
    Capturing {
        /// The kernel's name in Rust.
        kernel: &'static str,
    },
    /// The crate was compiled without the PTX.
    #[error(
        "kernel `{kernel}`: the crate was compiled with signatures only, as `{path}` was missing; make that file, and compile the crate again without GRIDCALL_SIGNATURES_ONLY"
    )]
    SignaturesOnly {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
    },
    /// The PTX is of a newer version than the driver reads.
    #[error(
        "kernel `{kernel}`: `{path}` is PTX ISA {}.{}{}, and this driver supports up to CUDA {}.{}{}; update the driver, compile with an older toolkit, or give machine code for `sm_{}{}` beside it (`cubin = \"..\"`)",
        ptx.0, ptx.1, toolkit(*ptx), driver / 1000, driver % 1000 / 10, isa(*driver), capability.0, capability.1
    )]
    PtxTooNew {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The file's `.version`.
        ptx: (u32, u32),
        /// What `cuDriverGetVersion` answers: 1000 × major + 10 × minor.
        driver: u32,
        /// The device's compute capability.
        capability: (u32, u32),
    },
    /// The PTX is for another architecture.
    #[error(
        "kernel `{kernel}`: `{path}` is compiled for `{target}`, which a device of compute capability {}.{} cannot run; compile for `compute_{}{}` or lower, without a suffix",
        capability.0, capability.1, capability.0, capability.1
    )]
    WrongTarget {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The file's `.target`.
        target: &'static str,
        /// The device's compute capability.
        capability: (u32, u32),
    },
    /// The driver's compiler refused the PTX.
    #[error("kernel `{kernel}`: the driver cannot compile `{path}`: {code}{log}{hint}")]
    Jit {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The PTX file, as the declaration names it.
        path: &'static str,
        /// The driver's answer.
        code: DriverCode,
        /// The compiler's own log, each line on a line of its own, or empty.
        log: String,
        /// What to do, if the log shows it, or empty.
        hint: &'static str,
    },
    /// The driver refused machine code that is beside the PTX, though not for the device's sake.
    #[error(
        "kernel `{kernel}`: the driver cannot load `{path}`: {code}{log}; make it anew with a toolkit that this driver knows, or leave it out of the declaration"
    )]
    MachineCode {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The file, as the declaration names it.
        path: &'static str,
        /// The driver's answer.
        code: DriverCode,
        /// The driver's own log, each line on a line of its own, or empty.
        log: String,
    },
    /// The module loaded, and has no such entry.
    #[error("kernel `{kernel}`: the driver finds no entry `{entry}` in {path}{instead}")]
    NoEntry {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The entry's name.
        entry: String,
        /// The file or the module.
        path: String,
        /// What it has, if the driver tells, or empty.
        instead: String,
    },
    /// The loaded kernel takes other parameters than the declaration says.
    #[error(
        "kernel `{kernel}`: parameter {index}, `{name}`, is {declared} bytes at offset {offset} in `{path}`, but the loaded kernel takes {found}; declare what it takes, or load what was compiled from the same source"
    )]
    Parameters {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The file or the module.
        path: String,
        /// The parameter, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Its size by the declaration, in bytes.
        declared: usize,
        /// Its offset by the declaration, in bytes.
        offset: usize,
        /// What the driver says of it.
        found: String,
    },
    /// The module is not that of the declaration.
    #[error("kernel `{kernel}`: {message}")]
    Mismatch {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// What differs, and where.
        message: String,
    },
    /// A symbol cannot be taken from its module.
    #[error("symbol `{name}`: {message}")]
    Symbol {
        /// The static's name in Rust.
        name: &'static str,
        /// Why not.
        message: String,
    },
    /// None of the kernel's images is for this device.
    #[error("kernel `{kernel}`: no image is for a device of compute capability {}.{}; there are {variants}; add one for that capability or a lower one", capability.0, capability.1)]
    NoVariant {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The device's compute capability.
        capability: (u32, u32),
        /// The images and their targets.
        variants: String,
    },
    /// A module's file could not be read.
    #[error("cannot read {path}: {source}{}", where_from(path, source))]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A module is text, and not the PTX that it should be.
    #[error("not the PTX that it should be: {place}: {message}")]
    Ptx {
        /// The module, as it was named, with line and column where one is wrong.
        place: String,
        /// What was expected there, and what to do if that is known.
        message: String,
    },
    /// The source could not be compiled, or a declaration is not that of its kernel.
    #[cfg(feature = "nvrtc")]
    #[error("{0}")]
    Nvrtc(crate::nvrtc::CompileError),
    /// The driver refused a module.
    #[error("the driver cannot load {module}: {code}{log}{hint}")]
    Module {
        /// The module, as it was named.
        module: String,
        /// The driver's answer.
        code: DriverCode,
        /// The compiler's own log, each line on a line of its own, or empty.
        log: String,
        /// What to do, if the log shows it, or empty.
        hint: &'static str,
    },
    /// Another call of the driver failed.
    #[error("kernel `{kernel}`: {call} failed: {code}")]
    Driver {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
    },
    /// The driver did not say how many blocks of the kernel run at a time.
    #[error("kernel `{kernel}`: {reason}")]
    Occupancy {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// Why not.
        reason: GeometryError,
    },
    /// A stream of another library is not of the device it was taken for.
    #[error(
        "the stream is not of the primary context of device {ordinal}; pass one of that device"
    )]
    OtherStream {
        /// The device.
        ordinal: usize,
    },
    /// The context could not be created or made current.
    #[error("cannot use the context of device {ordinal}: {source}")]
    Context {
        /// The device.
        ordinal: usize,
        /// cudarc's error.
        source: DriverError,
    },
}

/// What there is beside a driver.
#[cfg(feature = "emulator")]
const OTHERWISE: &str = "let GRIDCALL_DRIVER be other than `cuda`, for the emulator";
#[cfg(not(feature = "emulator"))]
const OTHERWISE: &str = "turn on gridcall's feature `emulator`, which needs none";

impl LoadError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &LoadErrorKind {
        &self.0
    }
}

#[cfg(feature = "nvrtc")]
impl From<crate::nvrtc::CompileError> for LoadError {
    #[cold]
    fn from(error: crate::nvrtc::CompileError) -> LoadError {
        LoadErrorKind::Nvrtc(error).into()
    }
}

impl From<LoadErrorKind> for LoadError {
    #[cold]
    fn from(kind: LoadErrorKind) -> LoadError {
        LoadError(Box::new(kind))
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
