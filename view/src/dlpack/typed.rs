//! A tensor whose element type and number of dimensions have been checked.

use std::marker::PhantomData;

use super::{Tensor, tensor::wrong_type};
use crate::{AsDeviceView, AsDeviceViewMut, Element, Guard, StreamRef, View, ViewError};

/// A [`Tensor`] of elements `T` in `N` dimensions: passing it for another type does not compile.
///
/// ```
/// use gridcall_view::{DType, Order, Place, Tensor, TypedTensor};
/// # let (address, owner) = (0x7000, ());
/// # // SAFETY: nothing uses the address.
/// # let tensor = unsafe {
/// #     Tensor::from_parts(
/// #         address, DType::F32, &[2, 3], None, Place::Device(0), Order::Settled, Box::new(owner),
/// #     )
/// # }?;
/// let x: TypedTensor<f32, 2> = tensor.typed()?;
/// assert_eq!(x.shape(), [2, 3]);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
#[derive(Debug)]
pub struct TypedTensor<T, const N: usize> {
    tensor: Tensor,
    elements: PhantomData<T>,
}

impl<T: Element, const N: usize> TypedTensor<T, N> {
    pub(super) fn new(tensor: Tensor) -> Result<TypedTensor<T, N>, ViewError> {
        if tensor.dtype() != T::DTYPE {
            return Err(wrong_type(T::DTYPE, tensor.dtype()));
        }
        let rank = tensor.shape().len();
        if rank != N {
            return Err(ViewError::other(format!(
                "expected {N} dimensions, the array has {rank}: shape {:?}",
                tensor.shape()
            )));
        }
        Ok(TypedTensor {
            tensor,
            elements: PhantomData,
        })
    }

    /// The number of elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> [usize; N] {
        let mut shape = [0; N];
        shape.copy_from_slice(self.tensor.shape());
        shape
    }

    /// The distance, in elements, between neighbours along each dimension.
    #[must_use]
    pub fn strides(&self) -> [isize; N] {
        let mut strides = [0; N];
        strides.copy_from_slice(self.tensor.strides());
        strides
    }
}

impl<T, const N: usize> TypedTensor<T, N> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensor.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensor.is_empty()
    }

    /// The tensor without its type.
    #[must_use]
    pub fn into_inner(self) -> Tensor {
        self.tensor
    }
}

// SAFETY: as for `Tensor`; the element type was compared when this was made.
unsafe impl<T: Element, const N: usize> AsDeviceView<T> for TypedTensor<T, N> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.tensor.view())
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.tensor.use_on(stream)
    }
}

// SAFETY: as for `Tensor`; the element type was compared when this was made.
unsafe impl<T: Element, const N: usize> AsDeviceViewMut<T> for TypedTensor<T, N> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(self.tensor.view())
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.tensor.use_on(stream)
    }
}
