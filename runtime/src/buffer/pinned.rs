//! Host memory that the device copies to and from by itself.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
    sync::Arc,
};

use bytemuck::AnyBitPattern;
use cudarc::driver::{CudaContext, result};

use super::stream::driver_error;
use crate::{
    current::Current,
    error::{BufferError, BufferErrorKind},
};

/// An array of page-locked host memory, for copies that the host does not wait for
/// ([`Buffer::upload`](crate::Buffer::upload), [`Buffer::download`](crate::Buffer::download)).
///
/// It is ordinary memory for the host, and cached. A copy owns it until it is done, so that the
/// host cannot touch it meanwhile.
///
/// ```no_run
/// # use gridcall::{Buffer, Pinned};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.new_stream()?;
/// let mut numbers = Pinned::<u32>::zeroed(&ctx, 3)?;
/// numbers.copy_from_slice(&[1, 2, 3]);
/// let mut buffer = Buffer::<u32>::zeroed(&stream, 3)?;
/// let uploaded = buffer.upload(&stream, numbers)?;
/// let downloaded = buffer.download(&stream, Pinned::zeroed(&ctx, 3)?)?;
/// assert_eq!(*downloaded.wait()?, [1, 2, 3]); // or `.await?`
/// let numbers = uploaded.wait()?; // for the next upload
/// # Ok(())
/// # }
/// ```
pub struct Pinned<T> {
    first: NonNull<T>,
    len: usize,
    context: Arc<CudaContext>,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements, like a box; the driver's functions may be called from any thread.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: a shared reference only lends its elements.
unsafe impl<T: Sync> Sync for Pinned<T> {}

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for every context.
const PORTABLE: u32 = 1;

impl<T: AnyBitPattern> Pinned<T> {
    /// `len` elements of zeros.
    ///
    /// # Errors
    ///
    /// If there is no memory, or the driver fails.
    pub fn zeroed(context: &Arc<CudaContext>, len: usize) -> Result<Pinned<T>, BufferError> {
        const { assert!(size_of::<T>() > 0, "a type without a size needs no memory") };
        const { assert!(align_of::<T>() <= 4096, "memory is pinned in pages") };
        let too_large = BufferErrorKind::TooLarge {
            len,
            size: size_of::<T>(),
        };
        let bytes = len.checked_mul(size_of::<T>());
        let Some(bytes) = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()) else {
            return Err(too_large.into());
        };
        let mut first = NonNull::dangling();
        if bytes > 0 {
            let _current =
                Current::enter(context).map_err(|e| driver_error("cuCtxSetCurrent", e))?;
            // SAFETY: a context is current, and `Pinned` frees what it gets.
            let memory = unsafe { result::malloc_host(bytes, PORTABLE) }
                .map_err(|e| driver_error("cuMemHostAlloc", e))?;
            let null = cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            first = NonNull::new(memory.cast::<T>())
                .ok_or_else(|| driver_error("cuMemHostAlloc", cudarc::driver::DriverError(null)))?;
            // SAFETY: so many bytes were just allocated, and zeros are a `T`.
            unsafe { first.as_ptr().write_bytes(0, len) };
        }
        Ok(Pinned {
            first,
            len,
            context: context.clone(),
            elements: PhantomData,
        })
    }

    /// A copy of the elements.
    ///
    /// # Errors
    ///
    /// If there is no memory, or the driver fails.
    pub fn from_slice(
        context: &Arc<CudaContext>,
        elements: &[T],
    ) -> Result<Pinned<T>, BufferError> {
        let mut pinned = Pinned::zeroed(context, elements.len())?;
        pinned.copy_from_slice(elements);
        Ok(pinned)
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: it owns so many elements, all of which are values, and is borrowed.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: it owns so many elements, all of which are values, and is exclusively borrowed.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        // A failure leaks it.
        if let Ok(_current) = Current::enter(&self.context) {
            // SAFETY: it came from `cuMemHostAlloc`, and no copy uses it: each owns it until done.
            let _ = unsafe { result::free_host(self.first.as_ptr().cast()) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&&**self).finish()
    }
}
