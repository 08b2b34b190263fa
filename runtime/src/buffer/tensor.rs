//! Buffers as tensors, to be handed on to another library.

use gridcall_view::{AsDeviceViewMut, Element, ForeignStream, Order, Tensor};

use super::{Buffer, memory::enter};
use crate::ViewError;

impl<T: Element + Send + Sync> Buffer<T> {
    /// A tensor of the elements, in row-major order, without a copy.
    ///
    /// Its order is that of the buffer's own stream, which waits for all uses so far.
    ///
    /// ```no_run
    /// let stream = gridcall::device(0)?.default_stream();
    /// let matrix = gridcall::Buffer::<f32>::zeroed(&stream, 6)?.into_tensor(&[2, 3])?;
    /// assert_eq!(matrix.shape(), [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the shape has another number of elements, a stream that used the buffer is being
    /// captured, or the driver fails. The buffer is dropped then.
    pub fn into_tensor(mut self, shape: &[usize]) -> Result<Tensor, ViewError> {
        let product = shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n));
        if product != Some(self.len()) {
            return Err(ViewError::other(format!(
                "shape {shape:?} does not fit {} elements",
                self.len()
            )));
        }
        let view = self.describe_mut()?;
        let (pointer, place) = (view.pointer(), view.place());
        let stream = self.stream().clone();
        let _current = enter(&stream)?;
        self.acquire_mut((&*stream).into())?.finish()?;
        // SAFETY: the buffer holds its stream, and the tensor holds the buffer.
        let order = Order::Stream(unsafe { ForeignStream::from_raw(stream.cu_stream().cast()) });
        // SAFETY: the buffer owns its elements until it is dropped with the tensor. Nobody else has
        // it, and its earlier uses are before the stream's next work.
        unsafe { Tensor::from_parts(pointer, T::DTYPE, shape, None, place, order, Box::new(self)) }
    }
}
