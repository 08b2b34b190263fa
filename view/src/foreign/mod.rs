//! What all arrays of other libraries share: how their work is ordered with a launch, and when
//! their owners may be let go.
//!
//! Knows the driver by its handles and a dozen functions; no binding.

mod description;
mod dims;
mod driver;
mod event;
mod order;
mod release;

pub use order::{ForeignStream, Order};

pub(crate) use description::Description;
pub(crate) use dims::Dims;
pub(crate) use order::Joined;
pub(crate) use release::{Owner, Uses};
#[cfg(feature = "pyo3")]
pub(crate) use release::{hold, release_done};

#[cfg(test)]
pub(crate) use driver::fake;
