//! What all arrays of other libraries share: how their work is ordered with a launch, and when
//! their owners may be let go.
//!
//! Knows the driver by its handles and a dozen functions; no binding.

mod description;
mod dims;
mod driver;
mod event;
#[cfg(feature = "pyo3")]
mod memory;
mod order;
#[cfg(feature = "pyo3")]
mod place;
mod release;
#[cfg(test)]
mod tests;

pub use order::{ForeignStream, Order};

pub(crate) use description::Description;
#[cfg(feature = "pyo3")]
pub(crate) use description::{Device, Elements};
pub(crate) use dims::Dims;
pub(crate) use event::in_context;
#[cfg(feature = "pyo3")]
pub(crate) use event::{Context, primary, synchronize};
#[cfg(feature = "pyo3")]
pub(crate) use memory::Memory;
#[cfg(feature = "pyo3")]
pub(crate) use order::Settled;
pub(crate) use order::{Joined, order_use};
#[cfg(feature = "pyo3")]
pub(crate) use place::{one_device, place_of};
#[cfg(feature = "pyo3")]
pub(crate) use release::release_done;
pub(crate) use release::{Owner, Uses};

#[cfg(test)]
pub(crate) use driver::fake;
