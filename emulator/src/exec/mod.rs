//! Runs PTX: a module is lowered once to a [`Program`]; a [`Launch`] of one of its kernels becomes a
//! [`Grid`], which runs a few steps at a time over any [`GlobalMemory`] and stops at the first [`Fault`].
//!
//! Nothing here knows the driver API or where memory lies: both are the caller's.
//!
//! # What is exact
//!
//! Integers, conversions, and floating-point arithmetic in every format, rounding, `.ftz`, `.sat` and `.relu`
//! are those of an H200, bit for bit, NaNs included. Approximate functions, whose bits the ISA does not
//! define, are computed in double precision and rounded once. The largest differences from an H200, over forty
//! operands each, in units of the last place:
//!
//! | function | difference |
//! |---|---|
//! | `rcp` `sqrt` `rsqrt` `ex2` `div.approx` `div.full`, `.f32` | 1 |
//! | `lg2.approx.f32` | 1, close to 1.0 up to 10 |
//! | `sin` `cos` `.approx.f32` from -π to π | 2⁻²¹ in absolute terms; the ISA gives no bound beyond |
//! | `tanh.approx.f32` | 114, where the ISA allows 2⁻¹¹ in relative terms |
//! | `ex2` `tanh`, `.f16` and `.bf16` | 1 |
//! | `rsqrt.approx.f64` | 1 |
//! | `rcp` `rsqrt` `.approx.ftz.f64` | 0 and 1 in the upper half; the lower is zero |
//! | `mma` on `.f16` `.bf16` `.tf32`, summed in `.f32` | 2⁻²⁰ in absolute terms, operands below 2 |
//! | linear filter of signed bytes read as floating-point numbers | 1/32767 in absolute terms |
//! | linear filter of sRGB | 2⁻⁸ in absolute terms, where neighbours differ much |
//!
//! Products of matrices are summed in double precision and rounded once. Device threads that do not take part
//! in a `shfl` are not read: the reader gets its own value.

#![deny(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "instructions take the lower bits of registers, and lanes, registers, instructions and bytes of \
              shared and local memory all count below 2^32"
)]
#![allow(
    clippy::inline_always,
    reason = "the loops over lanes are to be compiled for each set of vector instructions"
)]
#![allow(
    clippy::many_single_char_names,
    reason = "a, b, c and d are what the manual calls operands"
)]
#![allow(
    clippy::match_same_arms,
    clippy::struct_excessive_bools,
    clippy::too_many_lines,
    reason = "instructions have many forms and modifiers, and are read best as tables, a row each"
)]
#![allow(clippy::similar_names, reason = "lanes and a lane stand side by side")]

mod access;
mod alu;
mod alu_float;
mod alu_int;
mod approx;
mod atomic;
mod barrier;
mod block;
mod bulk;
mod check;
mod code;
mod code_base;
mod context;
mod convert;
mod copies;
mod coverage;
mod fast;
mod fault;
mod format;
mod frame;
mod grid;
mod half;
mod image;
mod image_op;
mod launch;
mod local;
mod lower;
mod matrix;
mod mbarrier;
mod memory;
mod number;
mod printf;
mod program;
#[cfg(test)]
mod properties;
mod races;
mod random;
mod sample;
mod shared;
mod space;
mod special;
mod step;
mod sync;
mod tensor_map;
mod tile;
mod trouble;
mod types;
mod visit;
mod warp;

pub use coverage::Coverage;
pub use fault::{Fault, FaultKind, SourceLine, TextPosition};
pub use grid::{Grid, Progress, Stats};
pub use image::{AddressMode, ChannelFormat, Image, ImageShape, Sampler};
pub use launch::{DeviceInfo, Launch, Order};
pub use memory::{Access, Bytes, GlobalMemory, MemoryFault, Window};
pub use program::{
    Kernel, KernelParam, LowerError, Program, Relocation, Unsupported, Variable, VariableSpace,
};
pub use tensor_map::{Mode as TensorMode, TensorMap};
