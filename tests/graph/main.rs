//! Graphs, on whatever driver there is.
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

mod attributes;
mod build;
mod capture;
mod children;
mod conditions;
mod faults;
mod functions;
#[path = "../buffer/kernels.rs"]
mod kernels;
mod programs;
#[path = "../buffer/random.rs"]
mod random;
mod refusals;
mod reports;
mod updates;
mod uses;
