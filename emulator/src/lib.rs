//! Runs CUDA kernels on the host: the driver API over a PTX interpreter.

pub mod exec;
mod simd;
