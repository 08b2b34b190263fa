//! Spans of `tracing` (feature `tracing`) and ranges of NVTX (feature `nvtx`) around what takes
//! time on the host: loading a kernel, compiling its module, launching it.
//!
//! Without the features nothing of this is left in the program.

#![cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, reason = "NVTX is told less, or nobody anything")
)]

#[cfg(feature = "nvtx")]
mod nvtx;

#[cfg(feature = "nvtx")]
use std::fmt::Write as _;

use cudarc::driver::{CudaContext, sys::CUstream};

use crate::{launch::Dims, load::Loaded};

/// Ends what was begun, when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Range {
    #[cfg(feature = "tracing")]
    _span: Option<tracing::span::EnteredSpan>,
    #[cfg(feature = "nvtx")]
    _range: Option<nvtx::Pushed>,
}

/// While a declared kernel is loaded.
pub(crate) fn load(kernel: &'static str, context: &CudaContext) -> Range {
    Range {
        #[cfg(feature = "tracing")]
        _span: Some(
            tracing::debug_span!(target: "gridcall", "load", kernel, device = context.ordinal())
                .entered(),
        ),
        #[cfg(feature = "nvtx")]
        _range: nvtx::push(|message| write!(message, "load {kernel}")),
    }
}

/// While the driver takes a module, and where it is PTX, compiles it.
pub(crate) fn compile(module: &str, context: &CudaContext) -> Range {
    Range {
        #[cfg(feature = "tracing")]
        _span: Some(
            tracing::debug_span!(
                target: "gridcall",
                "compile",
                module,
                device = context.ordinal(),
            )
            .entered(),
        ),
        #[cfg(feature = "nvtx")]
        _range: nvtx::push(|message| write!(message, "compile {module}")),
    }
}

/// While a kernel is enqueued; with `GRIDCALL_SYNC=1`, until it is done.
#[inline(always)]
pub(crate) fn launch(kernel: &Loaded, dims: Dims, stream: CUstream) -> Range {
    Range {
        #[cfg(feature = "tracing")]
        _span: (tracing::Level::TRACE <= tracing::level_filters::LevelFilter::current())
            .then(|| launch_span(kernel, dims.numbers(), stream)),
        #[cfg(feature = "nvtx")]
        _range: nvtx::push(|message| {
            let (name, grid, block) = (kernel.declaration.kernel, dims.grid, dims.block);
            write!(message, "launch {name} {grid} {block}")
        }),
    }
}

#[cfg(feature = "tracing")]
#[cold]
#[inline(never)]
fn launch_span(kernel: &Loaded, dims: [u32; 7], stream: CUstream) -> tracing::span::EnteredSpan {
    let dims = Dims::from_numbers(dims);
    tracing::trace_span!(
        target: "gridcall",
        "launch",
        kernel = kernel.declaration.kernel,
        grid = %dims.grid,
        block = %dims.block,
        shared_mem_bytes = dims.shared_mem_bytes,
        stream = format_args!("{:#x}", stream.addr()),
        device = kernel.device,
    )
    .entered()
}
