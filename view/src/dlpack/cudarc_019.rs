//! cudarc 0.19's arrays as tensors, to be handed on to another library.

use cudarc_019::driver::CudaSlice;

use super::Tensor;
use crate::{AsDeviceView, AsDeviceViewMut, Element, ForeignStream, Order, ViewError};

impl Tensor {
    /// A tensor of the elements of an array, in row-major order.
    ///
    /// Its order is that of the array's own stream, on which cudarc frees it as well.
    ///
    /// # Errors
    ///
    /// If the array has another number of elements than the shape, or the driver refuses to let
    /// the stream wait for the array's last uses. The array is dropped then.
    pub fn from_slice<T: Element + Send + Sync>(
        mut array: CudaSlice<T>,
        shape: &[usize],
    ) -> Result<Tensor, ViewError> {
        let view = array.describe()?;
        let product = shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n));
        if product != Some(array.len()) {
            return Err(ViewError::other(format!(
                "shape {shape:?} does not fit {} elements",
                array.len()
            )));
        }
        let (pointer, place) = (view.pointer(), view.place());
        let stream = array.stream().clone();
        // Uses on other streams are known to the array alone, and recorded in it by other crates.
        array.acquire_mut((&*stream).into())?.finish()?;
        // SAFETY: the array holds its stream, and the tensor holds the array.
        let order = Order::Stream(unsafe { ForeignStream::from_raw(stream.cu_stream().cast()) });
        // SAFETY: the array owns its elements, of the type named, until it is dropped with the
        // tensor. Nobody else has it, and its earlier uses are before the stream's next work.
        unsafe {
            Tensor::from_parts(
                pointer,
                T::DTYPE,
                shape,
                None,
                place,
                order,
                Box::new(array),
            )
        }
    }
}
