//! [`Buffer`]: device memory whose uses are in the right order across streams.

mod array;
mod copy;
mod joins;
mod lend;
mod limbo;
mod memory;
mod order;
mod peer;
mod pinned;
mod slice;
mod stream;
#[cfg(feature = "dlpack")]
mod tensor;
mod uses;

use std::{fmt, marker::PhantomData, mem, ops::RangeBounds, sync::Arc};

use bytemuck::{AnyBitPattern, CheckedBitPattern, Zeroable};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut};

use self::memory::Memory;
use crate::{
    arg::KernelArg,
    awaiting::After,
    error::{BufferError, BufferErrorKind},
};

pub(crate) use self::stream::{driver_error, is_capturing, know};
pub use self::{
    array::{ArrayError, ArrayErrorKind, ArrayShape, CudaArray, Extents},
    peer::{PeerSlice, PeerSliceMut},
    pinned::Pinned,
    slice::{BufferSlice, BufferSliceMut},
};

/// An array on the device, whose uses are in the right order whatever streams they are on.
///
/// It is an argument of kernels like any [`AsDeviceView`](crate::AsDeviceView), and of cudarc's
/// and its libraries' functions through [`DevicePtr`](cudarc::driver::DevicePtr).
///
/// ```no_run
/// use gridcall::{Buffer, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let (first, second) = (ctx.new_stream()?, ctx.new_stream()?);
/// let x = Buffer::from_slice(&first, &[1.0_f32, 2.0, 3.0])?;
/// let mut y = Buffer::<f32>::zeroed(&first, 3)?;
/// saxpy(&first, cover(3), 3, 1.0, &x, &mut y)?;
/// saxpy(&second, cover(3), 3, 1.0, &x, &mut y)?; // waits for the one before
/// drop(x);                                       // freed once both are done; the host goes on
/// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Elements
///
/// What can be passed to a kernel by value ([`KernelArg`]) can be copied to the device; padding
/// means nothing there. Back on the host, a value must be one whatever the kernel wrote:
/// [`to_vec`](Buffer::to_vec) takes the types of which any bits are a value
/// ([`AnyBitPattern`](bytemuck::AnyBitPattern): integers, floats, vectors and arrays of them), and
/// those that can be checked ([`CheckedBitPattern`](bytemuck::CheckedBitPattern): `bool`, and your
/// own types with `bytemuck`'s derives); everything else comes back [as bytes](Buffer::to_bytes).
///
/// # Order
///
/// Each buffer remembers the streams that use it, and settles their order only when another one
/// comes: then that stream waits for the others (at most one event and one wait for each of them
/// at a launch, whatever the number of arrays). As long as one stream uses a buffer, a launch
/// compares one word of it; as long as up to fifteen only read it, some of theirs. Nothing is
/// written, locked or allocated then.
///
/// - A read waits for the writes of other streams, a write for their reads and writes. Parts that
///   do not overlap do not wait for each other.
/// - Dropping counts as a write: the memory is freed in stream order, after all uses, and the host
///   waits for nothing.
/// - A stream is kept alive by the buffers that it used, until another write has waited for it.
/// - Streams that cannot be kept alive are noted by an event at each launch: the per-thread stream,
///   those of other bindings, and those that were never seen by their `Arc`, on which no buffer
///   was made, copied or awaited.
/// - A stream that is being captured into a graph is refused: what the graph does later, nobody
///   could wait for. A buffer that is dropped while one of its streams is being captured is freed
///   when the next buffer is made or dropped after the capture.
///
/// # Errors
///
/// An error of a wait is returned by the call that needed it, which does nothing then. When a
/// buffer is dropped and the driver fails, the memory is leaked rather than freed too early, and
/// cudarc's next call in the context tells of the error; [`free`](Buffer::free) returns it.
///
/// # Forgetting
///
/// Nothing here relies on a destructor to be run:
///
/// - A use is noted when the array is acquired, before it is enqueued. Forgetting the guard of a
///   launch forgets no use. Where the use is noted by an event, which the guard records, an event
///   that was never recorded makes the next use wait for everything in its context.
/// - A forgotten buffer is never freed. A forgotten slice only borrowed.
/// - A forgotten [`After`] never drops what it owns, which stays as it is.
///
/// # Without pools
///
/// Where a device has no memory pools, memory comes from `cuMemAlloc`, and a drop waits for its
/// users.
pub struct Buffer<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T> Buffer<T> {
    /// `len` elements of zeros.
    ///
    /// # Errors
    ///
    /// If there is no memory, the stream is being captured, or the driver fails.
    pub fn zeroed(stream: &Arc<CudaStream>, len: usize) -> Result<Buffer<T>, BufferError>
    where
        T: Zeroable,
    {
        // SAFETY: the elements are set before anyone can see them, and zeros are a `T`.
        let mut buffer = unsafe { Buffer::uninit(stream, len) }?;
        buffer.as_slice_mut().clear(stream)?;
        Ok(buffer)
    }

    /// `len` elements that nobody has written yet.
    ///
    /// # Safety
    ///
    /// Every element must be written before it is read as a `T`.
    ///
    /// # Errors
    ///
    /// If there is no memory, the stream is being captured, or the driver fails.
    pub unsafe fn uninit(stream: &Arc<CudaStream>, len: usize) -> Result<Buffer<T>, BufferError> {
        const { assert!(size_of::<T>() > 0, "the device has no types without a size") };
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or(BufferErrorKind::TooLarge {
            len,
            size: size_of::<T>(),
        })?;
        Ok(Buffer {
            memory: Memory::allocate(stream, bytes)?,
            len,
            elements: PhantomData,
        })
    }

    /// A copy of the elements. Returns once they are on the device.
    ///
    /// # Errors
    ///
    /// If there is no memory, the stream is being captured, or the driver fails.
    pub fn from_slice(stream: &Arc<CudaStream>, elements: &[T]) -> Result<Buffer<T>, BufferError>
    where
        T: KernelArg,
    {
        // SAFETY: all elements are written before anyone can see them.
        let mut buffer = unsafe { Buffer::uninit(stream, elements.len()) }?;
        buffer.copy_from_slice(elements)?;
        Ok(buffer)
    }

    /// Takes over one of cudarc's arrays, without a copy.
    ///
    /// Its uses until now are those that cudarc tracks; this waits for no others.
    ///
    /// # Errors
    ///
    /// If the driver fails; the array then leaks.
    pub fn from_cuda_slice(slice: CudaSlice<T>) -> Result<Buffer<T>, BufferError> {
        const { assert!(size_of::<T>() > 0, "the device has no types without a size") };
        let (stream, len) = (slice.stream().clone(), slice.len());
        // It is made ordered after its tracked uses there; a failure is stored in the context.
        let earlier = stream.context().check_err();
        let pointer = slice.leak();
        let ordered = stream.context().check_err();
        stream.context().record_err(earlier);
        ordered.map_err(|e| driver_error("cuStreamWaitEvent", e))?;
        // SAFETY: the slice owned the memory, and gave it to us; it was allocated as cudarc
        // allocates there, and its tracked uses are before what its stream does next.
        let memory = unsafe { Memory::own(&stream, pointer, len * size_of::<T>()) }?;
        Ok(Buffer {
            memory,
            len,
            elements: PhantomData,
        })
    }

    /// Gives the memory to cudarc, without a copy.
    ///
    /// Its own stream is made to wait for all uses.
    ///
    /// # Errors
    ///
    /// If a stream that used the buffer is being captured, or the driver fails; the buffer is then
    /// dropped.
    pub fn into_cuda_slice(self) -> Result<CudaSlice<T>, BufferError> {
        // cudarc makes two events for it, and panics if it cannot.
        let context = self.stream().context();
        drop(
            context
                .new_event(None)
                .map_err(|e| driver_error("cuEventCreate", e))?,
        );
        let (stream, pointer) = self.memory.give_up()?;
        // SAFETY: the memory holds `len` elements and is owned by nobody else now; it was
        // allocated as cudarc allocates there.
        let mut slice: CudaSlice<T> = unsafe { stream.upgrade_device_ptr(pointer, self.len) };
        // All uses so far become the array's last write, which other streams wait for.
        drop(slice.device_ptr_mut(&stream).1);
        stream
            .context()
            .check_err()
            .map_err(|e| driver_error("cuEventRecord", e))?;
        Ok(slice)
    }

    /// The number of elements.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream that the buffer was made on.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.memory.stream()
    }

    /// All elements, for reading.
    #[must_use]
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice::all(&self.memory, self.len)
    }

    /// All elements, for writing.
    #[must_use]
    pub fn as_slice_mut(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut::all(&mut self.memory, self.len)
    }

    /// Some of the elements, for reading.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>, BufferError> {
        self.as_slice().slice(range)
    }

    /// Some of the elements, for writing.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn slice_mut(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> Result<BufferSliceMut<'_, T>, BufferError> {
        self.as_slice_mut().into_slice(range)
    }

    /// The same memory as a buffer of elements of another type; who used it is still known.
    ///
    /// ```no_run
    /// # use gridcall::Buffer;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let numbers = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0, 4.0])?;
    /// let vectors: Buffer<[f32; 2]> = numbers.cast()?;
    /// assert_eq!(vectors.to_vec()?, [[1.0, 2.0], [3.0, 4.0]]);
    /// let bits: Buffer<u32> = vectors.cast()?;
    /// assert_eq!(bits.to_vec()?[0], 1.0_f32.to_bits());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the bytes are no whole number of such elements, or not aligned for them. The buffer is
    /// then dropped; [`BufferSlice::cast`] tells beforehand.
    pub fn cast<U: AnyBitPattern>(self) -> Result<Buffer<U>, BufferError> {
        let len = self.as_slice().cast::<U>()?.len();
        Ok(Buffer {
            memory: self.memory,
            len,
            elements: PhantomData,
        })
    }

    /// The elements before `middle` and those from there on, each for writing, perhaps by two
    /// threads and on two streams at a time.
    ///
    /// # Errors
    ///
    /// If `middle` is beyond the end.
    pub fn split_at_mut(
        &mut self,
        middle: usize,
    ) -> Result<(BufferSliceMut<'_, T>, BufferSliceMut<'_, T>), BufferError> {
        self.as_slice_mut().into_split_at(middle)
    }

    /// The elements, on the host. Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the device wrote bytes that are no `T`, the stream is being captured, or the driver
    /// fails.
    pub fn to_vec(&self) -> Result<Vec<T>, BufferError>
    where
        T: CheckedBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// The elements as bytes, on the host. Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the stream is being captured, or the driver fails.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BufferError> {
        self.as_slice().to_bytes()
    }

    /// Copies the elements to the host. Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is being captured, or the driver fails.
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<(), BufferError>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice(elements)
    }

    /// Copies elements from the host. Returns once they are on the device.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is being captured, or the driver fails.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), BufferError>
    where
        T: KernelArg,
    {
        self.as_slice_mut().copy_from_slice(elements)
    }

    /// Copies elements from another buffer, in the order of `stream`, which must be in this
    /// buffer's context. The other one may be on another device.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is in another context or being captured, or the driver
    /// fails.
    pub fn copy_from(
        &mut self,
        stream: &Arc<CudaStream>,
        from: BufferSlice<'_, T>,
    ) -> Result<(), BufferError> {
        self.as_slice_mut().copy_from(stream, from)
    }

    /// Sets all bytes to zero, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// If the stream is in another context or being captured, or the driver fails.
    pub fn clear(&mut self, stream: &Arc<CudaStream>) -> Result<(), BufferError>
    where
        T: Zeroable,
    {
        self.as_slice_mut().clear(stream)
    }

    /// Copies the elements to pinned memory, in the order of `stream`. The copy owns the pinned
    /// memory until it is done.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is in another context or being captured, or the driver
    /// fails. The pinned memory is then dropped.
    pub fn download(
        &self,
        stream: &Arc<CudaStream>,
        to: Pinned<T>,
    ) -> Result<After<Pinned<T>>, BufferError>
    where
        T: AnyBitPattern + Send,
    {
        self.as_slice().download(stream, to)
    }

    /// Copies elements from pinned memory, in the order of `stream`. The copy owns the pinned
    /// memory until it is done.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is in another context or being captured, or the driver
    /// fails. The pinned memory is then dropped.
    pub fn upload(
        &mut self,
        stream: &Arc<CudaStream>,
        from: Pinned<T>,
    ) -> Result<After<Pinned<T>>, BufferError>
    where
        T: AnyBitPattern + Send,
    {
        self.as_slice_mut().upload(stream, from)
    }

    /// A copy, made in the order of `stream`, on that stream's device.
    ///
    /// # Errors
    ///
    /// If there is no memory, the stream is being captured, or the driver fails.
    pub fn clone_to(&self, stream: &Arc<CudaStream>) -> Result<Buffer<T>, BufferError>
    where
        T: Copy,
    {
        self.as_slice().clone_to(stream)
    }

    /// Grows with zeros or shrinks to `len` elements, in the order of `stream`, into memory of its
    /// own.
    ///
    /// # Errors
    ///
    /// If there is no memory, the stream is in another context or being captured, or the driver
    /// fails. The buffer is then as it was.
    pub fn resize(&mut self, stream: &Arc<CudaStream>, len: usize) -> Result<(), BufferError>
    where
        T: Zeroable + Copy,
    {
        copy::is_here(&self.memory, stream)?;
        // SAFETY: every element is written below before anyone can see it.
        let mut other = unsafe { Buffer::uninit(stream, len) }?;
        let kept = len.min(self.len);
        let mut head = other.slice_mut(..kept)?;
        head.copy_from(stream, self.slice(..kept)?)?;
        other.slice_mut(kept..)?.clear(stream)?;
        drop(mem::replace(self, other));
        Ok(())
    }

    /// Frees the memory, as a drop does, and returns what went wrong.
    ///
    /// # Errors
    ///
    /// If a stream that used the buffer is being captured, in which case it is freed later, or if
    /// the driver fails, in which case it leaks.
    pub fn free(mut self) -> Result<(), BufferError> {
        let freed = self.memory.free();
        match &freed {
            Err(error) if !error.is_capturing() => self.memory.forget(),
            _ => {}
        }
        freed
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("pointer", &format_args!("{:#x}", self.memory.pointer()))
            .field("len", &self.len)
            .field("device", &self.memory.device())
            .finish_non_exhaustive()
    }
}
