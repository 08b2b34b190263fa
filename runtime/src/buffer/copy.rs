//! Copies between host and device, and between devices.
//!
//! What the host passes as a slice may be pinned memory, which the driver reads and writes at its
//! turn in the stream. So copies of slices wait for the stream. Copies of [`Pinned`] memory own it
//! instead, and do not wait.

use std::{any::type_name, ffi::c_void, sync::Arc, thread, time::Duration};

use bytemuck::{AnyBitPattern, CheckedBitPattern, Zeroable};
use cudarc::driver::{CudaStream, DriverError, sys};
use gridcall_view::StreamRef;

use super::{
    Buffer,
    memory::{Memory, enter},
    order::Access,
    pinned::Pinned,
    slice::{BufferSlice, BufferSliceMut},
    stream::{Launcher, driver_error, know},
};
use crate::{
    arg::KernelArg,
    awaiting::{After, after},
    error::{BufferError, BufferErrorKind},
    relaxed::RelaxedCapture,
};

impl<T> BufferSlice<'_, T> {
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
        let bits: Vec<T::Bits> = self.read_all(self.len())?;
        if let Some(index) = bits.iter().position(|bits| !T::is_valid_bit_pattern(bits)) {
            let ty = type_name::<T>();
            return Err(BufferErrorKind::Invalid { index, ty }.into());
        }
        let mut bits = std::mem::ManuallyDrop::new(bits);
        let (pointer, len, capacity) = (bits.as_mut_ptr(), bits.len(), bits.capacity());
        // SAFETY: `T` has the layout of its bits, by the trait, so the allocation is one of a
        // `Vec<T>`, and each of its elements has just been found to be a `T`.
        Ok(unsafe { Vec::from_raw_parts(pointer.cast(), len, capacity) })
    }

    /// The elements as bytes, on the host. Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the stream is being captured, or the driver fails.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BufferError> {
        self.read_all(self.len() * size_of::<T>())
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
        same_length(self.len(), elements.len())?;
        // SAFETY: the elements are as many as are copied, any bytes are a `T`, and they stay
        // borrowed until the copy is done.
        unsafe { self.read_to(elements.as_mut_ptr().cast()) }
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
        mut to: Pinned<T>,
    ) -> Result<After<Pinned<T>>, BufferError>
    where
        T: AnyBitPattern + Send,
    {
        same_length(self.len(), to.len())?;
        let part = self.part();
        is_here(part.memory, stream)?;
        let bytes = part.bytes::<T>().len();
        let (from, host) = (part.pointer(), to.as_mut_ptr().cast::<c_void>());
        let uses = [(part.memory, part.access::<T>(false))];
        enqueue(stream, &uses, "cuMemcpyDtoHAsync", |stream| {
            // SAFETY: the part holds so many bytes, and so does the pinned memory, which lives
            // until the copy is done.
            unsafe { sys::cuMemcpyDtoHAsync_v2(host, from, bytes, stream) }
        })?;
        after(stream, to)
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
        // SAFETY: all elements are written before anyone can see them.
        let mut copy = unsafe { Buffer::uninit(stream, self.len()) }?;
        copy.copy_from(stream, *self)?;
        Ok(copy)
    }

    /// `len` elements of any type, as many bytes as there are.
    fn read_all<B: AnyBitPattern>(&self, len: usize) -> Result<Vec<B>, BufferError> {
        let mut host: Vec<B> = Vec::with_capacity(len);
        // SAFETY: there is room for all bytes, and they stay until the copy is done.
        let read = unsafe { self.read_to(host.as_mut_ptr().cast()) };
        if let Err(error) = read {
            // Whatever the driver still does with it.
            std::mem::forget(host);
            return Err(error);
        }
        // SAFETY: all bytes have been written, and any are a `B`.
        unsafe { host.set_len(len) };
        Ok(host)
    }

    /// Copies to the host and waits for it.
    ///
    /// # Safety
    ///
    /// `to` must be writable for the bytes of the elements.
    unsafe fn read_to(&self, to: *mut c_void) -> Result<(), BufferError> {
        let part = self.part();
        let bytes = part.bytes::<T>().len();
        let stream = part.memory.nearest_stream();
        let uses = [(part.memory, part.access::<T>(false))];
        enqueue(&stream, &uses, "cuMemcpyDtoHAsync", |stream| {
            // SAFETY: the part holds so many bytes, and so does `to`, by the caller.
            unsafe { sys::cuMemcpyDtoHAsync_v2(to, part.pointer(), bytes, stream) }
        })?;
        finish(&stream)
    }
}

impl<T> BufferSliceMut<'_, T> {
    /// Copies elements from the host. Returns once they are on the device.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is being captured, or the driver fails.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), BufferError>
    where
        T: KernelArg,
    {
        same_length(elements.len(), self.len())?;
        let part = self.part();
        let bytes = part.bytes::<T>().len();
        let stream = part.memory.nearest_stream();
        let uses = [(part.memory, part.access::<T>(true))];
        enqueue(&stream, &uses, "cuMemcpyHtoDAsync", |stream| {
            let from = elements.as_ptr().cast();
            // SAFETY: the elements are as many bytes as the part holds, and stay borrowed until
            // the copy is done. Padding is copied as it is, and means nothing on the device.
            unsafe { sys::cuMemcpyHtoDAsync_v2(part.pointer(), from, bytes, stream) }
        })?;
        finish(&stream)
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
        same_length(from.len(), self.len())?;
        let (from, to) = (from.part(), self.part());
        is_here(to.memory, stream)?;
        let bytes = to.bytes::<T>().len();
        let uses = [
            (from.memory, from.access::<T>(false)),
            (to.memory, to.access::<T>(true)),
        ];
        if from.memory.context() == to.memory.context() {
            return enqueue(stream, &uses, "cuMemcpyDtoDAsync", |stream| {
                // SAFETY: both parts hold so many bytes, and do not overlap, since one of them is
                // borrowed for writing.
                unsafe { sys::cuMemcpyDtoDAsync_v2(to.pointer(), from.pointer(), bytes, stream) }
            });
        }
        let from_context: sys::CUcontext = from.memory.context().cast();
        let to_context: sys::CUcontext = to.memory.context().cast();
        enqueue(stream, &uses, "cuMemcpyPeerAsync", |stream| {
            let (to, from) = (to.pointer(), from.pointer());
            // SAFETY: both parts hold so many bytes in these contexts, which they keep alive.
            unsafe { sys::cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream) }
        })
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
        let part = self.part();
        is_here(part.memory, stream)?;
        let bytes = part.bytes::<T>().len();
        let uses = [(part.memory, part.access::<T>(true))];
        enqueue(stream, &uses, "cuMemsetD8Async", |stream| {
            // SAFETY: the part holds so many bytes, and zeros are a `T`.
            unsafe { sys::cuMemsetD8Async(part.pointer(), 0, bytes, stream) }
        })
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
        same_length(from.len(), self.len())?;
        let part = self.part();
        is_here(part.memory, stream)?;
        let bytes = part.bytes::<T>().len();
        let uses = [(part.memory, part.access::<T>(true))];
        enqueue(stream, &uses, "cuMemcpyHtoDAsync", |stream| {
            let host = from.as_ptr().cast();
            // SAFETY: the pinned memory holds as many bytes as the part, and lives until the copy
            // is done.
            unsafe { sys::cuMemcpyHtoDAsync_v2(part.pointer(), host, bytes, stream) }
        })?;
        after(stream, from)
    }
}

/// Enqueues one operation, with its uses of memory. With no bytes to use, nothing is enqueued.
pub(super) fn enqueue(
    stream: &Arc<CudaStream>,
    uses: &[(&Memory, Access)],
    call: &'static str,
    operation: impl FnOnce(sys::CUstream) -> sys::CUresult,
) -> Result<(), BufferError> {
    if uses.iter().all(|(_, access)| access.range.is_empty()) {
        return Ok(());
    }
    let _current = enter(stream)?;
    know(stream)?;
    let reference = StreamRef::from(&**stream).of_one_launch();
    let mut event = None;
    for (memory, access) in uses {
        let launcher = Launcher::new(memory, reference)?;
        memory.enter(&launcher, access)?;
        event = launcher.event().cloned();
    }
    let enqueued = operation(stream.cu_stream()).result();
    if let Some(event) = event {
        // SAFETY: the stream is alive and of the event's context, which is current.
        let recorded = unsafe { event.record(stream.cu_stream()) };
        if let Err(error) = recorded {
            // What is enqueued may use what the caller drops on an error.
            let _ = finish(stream);
            return Err(driver_error("cuEventRecord", error));
        }
    }
    enqueued.map_err(|e| driver_error(call, e))
}

/// Waits for all that is enqueued on the stream, which may use what the caller has borrowed.
pub(super) fn finish(stream: &CudaStream) -> Result<(), BufferError> {
    let _current = enter(stream)?;
    // Else a capture of another stream by this thread would be waited for, in vain.
    let _relaxed = RelaxedCapture::enter();
    loop {
        // SAFETY: the stream is alive and its context current.
        let finished = unsafe { sys::cuStreamSynchronize(stream.cu_stream()) }.result();
        match finished {
            // Another thread has begun to capture the stream since. What is enqueued runs before.
            Err(error) if is_of_capture(error) => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(driver_error("cuStreamSynchronize", error)),
            Ok(()) => return Ok(()),
        }
    }
}

/// Whether the driver does not do something because a graph is being captured.
fn is_of_capture(error: DriverError) -> bool {
    use sys::CUresult as Code;
    matches!(
        error.0,
        Code::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            | Code::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            | Code::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    )
}

fn same_length(from: usize, to: usize) -> Result<(), BufferError> {
    if from == to {
        return Ok(());
    }
    Err(BufferErrorKind::Length { from, to }.into())
}

pub(super) fn is_here(memory: &Memory, stream: &CudaStream) -> Result<(), BufferError> {
    let here = StreamRef::from(stream);
    if here.context() == memory.context() {
        return Ok(());
    }
    Err(BufferErrorKind::OtherContext {
        buffer: memory.device(),
        stream: here.device(),
    }
    .into())
}
