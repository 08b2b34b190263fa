//! Buffers on another device: reached by peer access, where it was asked for.

use std::{fmt, marker::PhantomData};

use cudarc::driver::{CudaContext, sys};
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, Place, StreamRef, View, ViewError};

use super::{Buffer, memory::Memory, stream::driver_error};
use crate::{
    current::Current,
    driver::{PoolAccess, driver},
    error::{BufferError, BufferErrorKind},
};

/// A buffer's elements, for kernels on another device.
///
/// Made by [`Buffer::peer`]. Its uses are ordered with all others of the buffer.
pub struct PeerSlice<'a, T> {
    memory: &'a Memory,
    len: usize,
    device: i32,
    elements: PhantomData<&'a [T]>,
}

/// A buffer's elements, for kernels on another device that write them.
///
/// Made by [`Buffer::peer_mut`]. Its uses are ordered with all others of the buffer.
pub struct PeerSliceMut<'a, T> {
    part: PeerSlice<'a, T>,
    exclusive: PhantomData<&'a mut [T]>,
}

impl<T> Buffer<T> {
    /// The elements for kernels on the device of another context, which reads them over the link
    /// between the devices.
    ///
    /// That device is let into the pool that the memory is from, and so into all that comes from
    /// it. It stays so.
    ///
    /// # Errors
    ///
    /// If the memory is from no pool, or the devices cannot reach each other's.
    pub fn peer(&self, context: &CudaContext) -> Result<PeerSlice<'_, T>, BufferError> {
        let_in(&self.memory, context)?;
        Ok(PeerSlice {
            memory: &self.memory,
            len: self.len,
            device: i32::try_from(context.ordinal()).unwrap_or(i32::MAX),
            elements: PhantomData,
        })
    }

    /// The elements for kernels on the device of another context, which writes them over the link
    /// between the devices.
    ///
    /// # Errors
    ///
    /// As for [`peer`](Buffer::peer).
    pub fn peer_mut(&mut self, context: &CudaContext) -> Result<PeerSliceMut<'_, T>, BufferError> {
        Ok(PeerSliceMut {
            part: self.peer(context)?,
            exclusive: PhantomData,
        })
    }
}

impl<T> PeerSlice<'_, T> {
    fn view(&self) -> View<'_> {
        View::new(self.memory.pointer(), self.len, Place::Device(self.device)).exclusive()
    }
}

// SAFETY: it borrows a buffer, and its uses are noted there; the device was let into the memory.
unsafe impl<T> AsDeviceView<T> for PeerSlice<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.view())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.memory.read(stream, 0..self.memory.bytes(), false)
    }
}

// SAFETY: it exclusively borrows a buffer, and its uses are noted there.
unsafe impl<T> AsDeviceView<T> for PeerSliceMut<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.part.view())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.part.acquire(stream)
    }
}

// SAFETY: it exclusively borrows a buffer, and its uses are noted there; the device was let into
// the memory for writing too.
unsafe impl<T> AsDeviceViewMut<T> for PeerSliceMut<'_, T> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(self.part.view())
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let memory = self.part.memory;
        memory.write(stream, 0..memory.bytes(), false)
    }
}

impl<T> fmt::Debug for PeerSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSlice")
            .field("len", &self.len)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for PeerSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PeerSliceMut").field(&self.part).finish()
    }
}

/// Lets a device read and write the pool that memory is from. Pools have their own list of devices:
/// `cuCtxEnablePeerAccess` does not open them.
fn let_in(memory: &Memory, context: &CudaContext) -> Result<(), BufferError> {
    let owner = memory.stream().context();
    if memory.bytes() == 0 || owner.ordinal() == context.ordinal() {
        return Ok(());
    }
    let no_pool = BufferErrorKind::NoPool {
        device: owner.ordinal(),
    };
    let set_access = driver().ok().and_then(|driver| driver.mem_pool_set_access);
    let (Some(set_access), true) = (set_access, owner.has_async_alloc()) else {
        return Err(no_pool.into());
    };
    let _current = Current::enter(owner).map_err(|e| driver_error("cuCtxSetCurrent", e))?;
    let mut pool: sys::CUmemoryPool = std::ptr::null_mut();
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    // SAFETY: the attribute is a pool's handle, for which `pool` has room; the memory is alive.
    unsafe { sys::cuPointerGetAttribute((&raw mut pool).cast(), attribute, memory.pointer()) }
        .result()
        .map_err(|e| driver_error("cuPointerGetAttribute", e))?;
    if pool.is_null() {
        return Err(no_pool.into());
    }
    let access = PoolAccess::read_and_write(context.cu_device());
    // SAFETY: the pool is the memory's, which lives; `access` is one description.
    let code = unsafe { set_access(pool, &raw const access, 1) };
    code.result().map_err(|source| {
        BufferErrorKind::NoPeer {
            from: owner.ordinal(),
            to: context.ordinal(),
            source,
        }
        .into()
    })
}
