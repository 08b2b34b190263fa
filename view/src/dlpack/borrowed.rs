//! A `DLTensor` that somebody else owns.

use std::{fmt, marker::PhantomData};

use dlpark::ffi::DLTensor;

use super::{import, tensor::wrong_type};
use crate::{
    AsDeviceView, AsDeviceViewMut, Element, Guard, Order, StreamRef, View, ViewError,
    foreign::{Description, order_use},
};

/// A tensor of DLPack, borrowed: for functions that are handed a `DLTensor*`.
///
/// ```
/// use gridcall_view::{AsDeviceView, BorrowedTensor, Order, dlpack::dlpark::ffi};
/// # let mut shape = [4_i64];
/// # let mut strides = [1_i64];
/// # let given = ffi::DLTensor {
/// #     data: std::ptr::without_provenance_mut(0x7000),
/// #     device: ffi::DLDevice { device_type: ffi::DLDeviceType::CUDA, device_id: 0 },
/// #     ndim: 1, dtype: ffi::DLDataType::F32,
/// #     shape: shape.as_mut_ptr(), strides: strides.as_mut_ptr(), byte_offset: 8,
/// # };
/// // SAFETY: `given` is as it says for as long as it is borrowed, and its owner is done with it.
/// let x = unsafe { BorrowedTensor::new(&given, Order::Settled) }?;
/// assert_eq!(AsDeviceView::<f32>::describe(&x)?.pointer(), 0x7008);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct BorrowedTensor<'a> {
    description: Description,
    order: Order,
    tensor: PhantomData<&'a DLTensor>,
}

impl<'a> BorrowedTensor<'a> {
    /// Reads a tensor, which is not needed any more afterwards; its memory is.
    ///
    /// # Errors
    ///
    /// As [`Tensor::from_dlpack`](crate::Tensor::from_dlpack).
    ///
    /// # Safety
    ///
    /// The tensor must say the truth, and its memory stay allocated for `'a` and until the work is
    /// done that uses it. `order` must be true of everyone else who uses the memory until then; if
    /// it is [`Order::Settled`], also of several launches that use this.
    pub unsafe fn new(tensor: &'a DLTensor, order: Order) -> Result<BorrowedTensor<'a>, ViewError> {
        // SAFETY: passed on to the caller.
        let description = unsafe { import::describe(tensor, false) }?;
        Ok(BorrowedTensor {
            description,
            order,
            tensor: PhantomData,
        })
    }

    /// The same tensor, not to be written.
    #[must_use]
    pub fn read_only(mut self) -> BorrowedTensor<'a> {
        self.description.read_only = true;
        self
    }

    #[inline(always)]
    fn use_on<'g>(&'g self, stream: StreamRef<'g>) -> Result<Guard<'g>, ViewError> {
        order_use(self.order, stream)
    }
}

// SAFETY: all that is not ordered by the joins is what the caller of `new` vouched for.
unsafe impl<T: Element> AsDeviceView<T> for BorrowedTensor<'_> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.description.view_of::<T>(wrong_type)
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }
}

// SAFETY: as for reading; the joins order reads and writes alike.
unsafe impl<T: Element> AsDeviceViewMut<T> for BorrowedTensor<'_> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.description.view_of::<T>(wrong_type)
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }
}

impl fmt::Debug for BorrowedTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedTensor")
            .field("description", &self.description)
            .field("order", &self.order)
            .finish()
    }
}
