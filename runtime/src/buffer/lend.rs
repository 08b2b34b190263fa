//! Buffers as arguments: of kernels, and of cudarc and its libraries.

use std::sync::Arc;

use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, DriverError, SyncOnDrop, sys,
};
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, StreamRef, View, ViewError};

use super::{
    Buffer,
    memory::{Memory, enter},
    order::Access,
    slice::{BufferSlice, BufferSliceMut, Part},
    stream::{Launcher, is_capturing},
};
use crate::error::{BufferError, BufferErrorKind};

// SAFETY: the buffer owns its elements until it is dropped, and is freed in stream order after
// all uses. `read` makes the stream wait for the writes of others, and notes the use before it
// returns, which the next write and the free wait for.
unsafe impl<T> AsDeviceView<T> for Buffer<T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.memory.view(self.memory.pointer(), self.len))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.memory.read(stream, 0..self.memory.bytes(), false)
    }
}

// SAFETY: as for reading; `write` makes the stream wait for all uses of others.
unsafe impl<T> AsDeviceViewMut<T> for Buffer<T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(self.memory.view(self.memory.pointer(), self.len))
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.memory.write(stream, 0..self.memory.bytes(), false)
    }
}

// SAFETY: a slice borrows a part of a buffer, and its uses are noted there.
unsafe impl<T> AsDeviceView<T> for BufferSlice<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(describe(self.part()))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let part = self.part();
        part.memory.read(stream, part.bytes::<T>(), part.is_split())
    }
}

// SAFETY: a slice exclusively borrows a part of a buffer, and its uses are noted there.
unsafe impl<T> AsDeviceView<T> for BufferSliceMut<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(describe(self.part()))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let part = self.part();
        part.memory.read(stream, part.bytes::<T>(), part.is_split())
    }
}

// SAFETY: a slice exclusively borrows a part of a buffer, and its uses are noted there.
unsafe impl<T> AsDeviceViewMut<T> for BufferSliceMut<'_, T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(describe(self.part()))
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let part = self.part();
        part.memory
            .write(stream, part.bytes::<T>(), part.is_split())
    }
}

#[inline(always)]
fn describe<'a>(part: &Part<'a>) -> View<'a> {
    part.memory.view(part.pointer(), part.len)
}

impl<T> DeviceSlice<T> for Buffer<T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.memory.stream()
    }
}

impl<T> DevicePtr<T> for Buffer<T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        let all = Access::whole(self.memory.bytes(), false);
        lend(&self.memory, self.memory.pointer(), stream, &all)
    }
}

impl<T> DevicePtrMut<T> for Buffer<T> {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        let all = Access::whole(self.memory.bytes(), true);
        lend(&self.memory, self.memory.pointer(), stream, &all)
    }
}

impl<T> DeviceSlice<T> for BufferSlice<'_, T> {
    fn len(&self) -> usize {
        self.part().len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.part().memory.stream()
    }
}

impl<T> DevicePtr<T> for BufferSlice<'_, T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        let part = self.part();
        lend(
            part.memory,
            part.pointer(),
            stream,
            &part.access::<T>(false),
        )
    }
}

impl<T> DeviceSlice<T> for BufferSliceMut<'_, T> {
    fn len(&self) -> usize {
        self.part().len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.part().memory.stream()
    }
}

impl<T> DevicePtr<T> for BufferSliceMut<'_, T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        let part = self.part();
        lend(
            part.memory,
            part.pointer(),
            stream,
            &part.access::<T>(false),
        )
    }
}

impl<T> DevicePtrMut<T> for BufferSliceMut<'_, T> {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        let part = self.part();
        lend(part.memory, part.pointer(), stream, &part.access::<T>(true))
    }
}

/// Lends an address to cudarc, which leaves no room for an error. It is stored in the stream's
/// context, as cudarc does, where its launches look before they begin; and the address is null, so
/// that a copy, which does not look, is refused by the driver rather than made out of order.
///
/// There is nothing to do when it ends. Where the use is noted by an event, it is never recorded,
/// so that the next use waits for everything: cudarc records one only while it tracks events, and
/// its guard could be forgotten.
fn lend<'a>(
    memory: &'a Memory,
    pointer: u64,
    stream: &'a CudaStream,
    access: &Access,
) -> (u64, SyncOnDrop<'a>) {
    let pointer = match settle(memory, stream, access) {
        Ok(()) => pointer,
        Err(error) => {
            stream.context().record_err::<()>(Err(code(&error)));
            0
        }
    };
    (pointer, SyncOnDrop::Record(None))
}

fn settle(memory: &Memory, stream: &CudaStream, access: &Access) -> Result<(), BufferError> {
    let _current = enter(stream)?;
    let reference = StreamRef::from(stream);
    if reference.context() != memory.context() {
        return Err(BufferErrorKind::OtherContext {
            buffer: memory.device(),
            stream: reference.device(),
        }
        .into());
    }
    if memory.is_open_to(reference, access.writes) {
        if is_capturing(stream.cu_stream())? {
            return Err(BufferErrorKind::Capturing.into());
        }
        return Ok(());
    }
    memory.enter(&Launcher::new(memory, reference)?, access)
}

/// The driver's code that says most of it.
fn code(error: &BufferError) -> DriverError {
    DriverError(match error.kind() {
        BufferErrorKind::Driver { source, .. } | BufferErrorKind::Broken(source) => source.0,
        BufferErrorKind::OtherContext { .. } => sys::CUresult::CUDA_ERROR_INVALID_CONTEXT,
        BufferErrorKind::Capturing => sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        BufferErrorKind::UserCapturing => sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        _ => sys::CUresult::CUDA_ERROR_UNKNOWN,
    })
}
