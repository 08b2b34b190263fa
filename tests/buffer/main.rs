//! Buffers and awaiting, on whatever driver there is.
//!
//! Kernels are slow here on purpose: what is not ordered goes wrong then.

#![allow(
    clippy::many_single_char_names,
    reason = "streams are a, b, c, and arrays x, y, z"
)]

#[macro_use]
#[path = "../launch/support.rs"]
#[allow(
    dead_code,
    reason = "shared with other tests, of which each uses a part"
)]
mod support;

mod awaiting;
mod capture;
mod copies;
mod devices;
mod faults;
mod kernels;
mod lending;
mod order;
mod programs;
mod random;
mod slices;
mod timing;
