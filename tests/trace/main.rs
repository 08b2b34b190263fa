//! What a subscriber of `tracing` and a profiler that listens to NVTX are told.

#[macro_use]
#[path = "../launch/support.rs"]
#[allow(
    dead_code,
    unused_macros,
    reason = "shared with other tests, of which each uses a part"
)]
mod support;

mod kernels;
mod nvtx;
mod spans;
