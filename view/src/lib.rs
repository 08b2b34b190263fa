//! How a device array shows itself to a kernel launch.
//!
//! [`AsDeviceView`] and [`AsDeviceViewMut`] are what `gridcall` asks of an argument. They know no
//! CUDA binding: pointers, streams and contexts are the driver's plain handles, so that any
//! library can implement them, whatever version of whatever binding it uses. A launch goes
//! through an array in three steps:
//!
//! 1. **describe**: [`AsDeviceView::describe`] returns a [`View`] (pointer, length, layout, place).
//!    It calls no driver function and enqueues nothing; all checks run on what it returns.
//! 2. **acquire**: [`AsDeviceView::acquire`] makes the launching stream wait for whatever must
//!    have finished first, and returns a [`Guard`].
//! 3. **finish**: after the kernel is enqueued, [`Guard::finish`] records its use of the array, so
//!    that the owner's next write or free waits for it.
//!
//! Views of other crates' types stand here too, since Rust's orphan rule lets them stand nowhere
//! else; each is an optional feature, and nothing is on by default: `cudarc-019` for cudarc's arrays,
//! `dlpack` for tensors of DLPack, `pyo3` for arrays of Python libraries, `candle` and `tch` for tensors
//! of those crates, and `half`, `num-complex` and `float8` for elements of theirs.
//!
//! # An array type of your own
//!
//! ```
//! use gridcall_view::{AsDeviceView, Guard, Place, StreamRef, View, ViewError};
//!
//! struct Frame { address: u64, pixels: usize, device: i32 }
//!
//! // SAFETY: a `Frame` owns `pixels` bytes at `address` until it is dropped, all work on frames
//! // is enqueued on one stream, and it is freed in that stream's order.
//! unsafe impl AsDeviceView<u8> for Frame {
//!     fn describe(&self) -> Result<View<'_>, ViewError> {
//!         Ok(View::new(self.address, self.pixels, Place::Device(self.device)))
//!     }
//!     fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
//!         Ok(Guard::none())
//!     }
//! }
//! # let frame = Frame { address: 4096, pixels: 640 * 480, device: 0 };
//! # assert_eq!(frame.describe().unwrap().len(), 307_200);
//! ```

mod array;
mod borrowed;
#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "cudarc-019")]
mod cudarc_019;
#[cfg(feature = "dlpack")]
pub mod dlpack;
mod dtype;
mod error;
#[cfg(feature = "dlpack")]
mod foreign;
mod guard;
#[cfg(feature = "pyo3")]
pub mod python;
mod shaped;
mod stream;
#[cfg(feature = "tch")]
pub mod tch;
mod tracking;
mod view;

pub use array::{AsDeviceView, AsDeviceViewMut};
pub use borrowed::{BorrowedView, BorrowedViewMut};
#[cfg(feature = "dlpack")]
pub use dlpack::{BorrowedTensor, Tensor, TypedTensor};
pub use dtype::{DType, Element};
pub use error::{ViewError, ViewErrorKind};
#[cfg(feature = "dlpack")]
pub use foreign::{ForeignStream, Order};
pub use guard::Guard;
pub use shaped::Shaped;
pub use stream::StreamRef;
#[doc(hidden)]
pub use tracking::Tracking;
pub use view::{Layout, Place, View};
