//! What can go wrong when a program is compiled, in the user's terms.

use std::{fmt, io};

use cudarc::driver::DriverError;

use crate::libnvrtc::{Failed, NotOpened};

/// Why a program was not compiled.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct CompileError(Box<CompileErrorKind>);

/// What a [`CompileError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// There is no NVRTC.
    #[error(
        "no NVRTC found: {looked_for} cannot be opened; install the CUDA toolkit (NVRTC alone is the package nvidia-cuda-nvrtc of pip), and name its folder in CUDA_PATH, the library's in LD_LIBRARY_PATH, or the library itself in GRIDCALL_NVRTC"
    )]
    NoLibrary {
        /// The names and paths that were tried.
        looked_for: String,
    },
    /// NVRTC lacks a function that all have since CUDA 11.2.
    #[error(
        "the NVRTC that was found is too old: it has no `{function}`; CUDA 11.2 or later is needed"
    )]
    OldLibrary {
        /// The function that is missing.
        function: &'static str,
    },
    /// The source's file cannot be read.
    #[error(
        "cannot read {path}: {source}{}",
        crate::error::where_from(path, source)
    )]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The source does not compile.
    #[error("cannot compile {name} for {arch}:\n{}{}", log.trim_end(), missing_header(log))]
    Source {
        /// The source, as the log names it.
        name: String,
        /// The architecture that it was compiled for.
        arch: String,
        /// What the compiler says: each message with file and line.
        log: String,
    },
    /// Declared kernels are not those of the source.
    #[error("declarations differ from {name}:\n{}", differences.trim_end())]
    Declarations {
        /// The source, as the log names it.
        name: String,
        /// What differs, each on a line of its own.
        differences: String,
    },
    /// The source compiles, but not with a kernel that is declared.
    #[error("{name} compiles, but has no kernel `{kernel}`, or more than one:\n{}", log.trim_end())]
    NoKernel {
        /// The source, as the log names it.
        name: String,
        /// The kernel's name in C++.
        kernel: String,
        /// What the compiler says.
        log: String,
    },
    /// A type has no name in C++.
    #[error(
        "an argument of the template `{template}` has no name in C++: {argument}; write the whole name expression as text, or name the struct by `#[kernel_arg(name = \"ns::Name\")]`"
    )]
    NoCppName {
        /// The template.
        template: String,
        /// The type or value.
        argument: String,
    },
    /// A kernel is declared by its lowered name.
    #[error(
        "kernel `{kernel}` is declared by its lowered name `{name}`, of which C++ knows nothing: give its name in C++, as in `#[name(\"math::add<float>\")]`"
    )]
    LoweredName {
        /// The kernel's name in Rust.
        kernel: &'static str,
        /// The name that it is declared by.
        name: &'static str,
    },
    /// The word is no architecture.
    #[error(
        "`{arch}` is no architecture: write `compute_90` for PTX, or `sm_90` for machine code too"
    )]
    NoArch {
        /// The word.
        arch: String,
    },
    /// An option names an architecture.
    #[error(
        "option `{option}`: the architecture is the device's, or what `Program::compile_for` says"
    )]
    ArchOption {
        /// The option.
        option: String,
    },
    /// NVRTC no longer compiles for the device.
    #[error(
        "NVRTC {}.{} compiles for compute capability {}.{} and later, and the device has {}.{}; install an older CUDA toolkit",
        nvrtc.0, nvrtc.1, oldest / 10, oldest % 10, capability.0, capability.1
    )]
    OldDevice {
        /// The device's compute capability.
        capability: (u32, u32),
        /// NVRTC's CUDA version.
        nvrtc: (u32, u32),
        /// The oldest architecture that it compiles for: `75` for `sm_75`.
        oldest: u32,
    },
    /// The device does not tell what it is.
    #[error("the compute capability of the device cannot be asked for: {0}")]
    Device(DriverError),
    /// A call of NVRTC failed for no fault of the source's.
    #[error("{call} failed: {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: String,
    },
}

impl CompileError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &CompileErrorKind {
        &self.0
    }

    /// What the compiler says, if it was the compiler who refused the source.
    #[must_use]
    pub fn log(&self) -> Option<&str> {
        match &*self.0 {
            CompileErrorKind::Source { log, .. } | CompileErrorKind::NoKernel { log, .. } => {
                Some(log)
            }
            _ => None,
        }
    }
}

impl From<CompileErrorKind> for CompileError {
    #[cold]
    fn from(kind: CompileErrorKind) -> CompileError {
        CompileError(Box::new(kind))
    }
}

impl From<NotOpened> for CompileError {
    fn from(error: NotOpened) -> CompileError {
        match error {
            NotOpened::Missing { looked_for } => CompileErrorKind::NoLibrary { looked_for },
            NotOpened::Old { function } => CompileErrorKind::OldLibrary { function },
        }
        .into()
    }
}

impl From<Failed> for CompileError {
    fn from(Failed { call, code }: Failed) -> CompileError {
        CompileErrorKind::Call { call, code }.into()
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The cure where a header is not found: many of nvcc's are unknown to NVRTC.
fn missing_header(log: &str) -> &'static str {
    if log.contains("cannot open source file") {
        "\nNVRTC finds no headers of the host's C++ library, such as <cstdint>: those of the toolkit take their place \
         (<cuda/std/cstdint>), and your own are found by `Program::include_path` or `Program::header`"
    } else {
        ""
    }
}
