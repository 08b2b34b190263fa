//! Arrays that come as DLPack tensors, and go as such.
//!
//! A [`Tensor`] is what another library exported: its element type, shape and strides are known
//! only at run time, so it can be passed for any element type and is checked at the call. Made a
//! [`TypedTensor`], it is checked once. A [`BorrowedTensor`] is a `DLTensor` of which nothing but
//! the borrow is known. Layouts and ownership of DLPack's own structs are those of the crate
//! [`dlpark`], of which this takes and gives [`dlpark::Managed`] tensors.
//!
//! # Order
//!
//! DLPack's structs say nothing of streams: what they need is in the protocol around them, and
//! differs. So each tensor is made with an [`Order`](crate::Order). With a stream of the owner's, a
//! launch on another stream waits for that one before, and that one for the launch after; the host
//! waits for nothing. A tensor may be dropped while kernels still use it: its owner is let go when
//! they are done, once, from any thread.

mod borrowed;
#[cfg(feature = "cudarc-019")]
mod cudarc_019;
mod device;
mod dtype;
mod export;
mod import;
mod tensor;
#[cfg(test)]
mod tests;
mod typed;

pub use borrowed::BorrowedTensor;
pub use dlpark;
pub use tensor::Tensor;
pub use typed::TypedTensor;

#[cfg(feature = "pyo3")]
pub(crate) use dtype::from_dlpack;
#[cfg(feature = "pyo3")]
pub(crate) use export::numbers;
#[cfg(feature = "pyo3")]
pub(crate) use import::{describe, elements, numbers_at, row_major};
