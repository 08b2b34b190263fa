//! Hands a tensor on as one of DLPack.

use std::{ffi::c_void, mem::ManuallyDrop, ptr};

use dlpark::{
    DlpackFlags, Managed, ManagedTensorBase,
    ffi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor},
    legacy, versioned,
};

use super::{Tensor, dtype};
use crate::{
    StreamRef, ViewError,
    foreign::{Joined, in_context},
};

/// A tensor of ours in a struct of DLPack. That stands first: its address is the box's.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _tensor: Tensor,
}

impl Tensor {
    /// Hands the tensor on to a library that takes DLPack's versioned struct, ready for use on
    /// `consumer`, that library's stream: its work there will run after what was enqueued for the
    /// tensor before. Without one, the caller sees to the order.
    ///
    /// The memory is let go when that library calls the deleter, which it must not do before its
    /// own work is ordered before what its deleter enqueues.
    ///
    /// # Errors
    ///
    /// If the driver refuses; the tensor is dropped then.
    pub fn into_dlpack(
        self,
        consumer: Option<StreamRef<'_>>,
    ) -> Result<versioned::Dlpack, ViewError> {
        let mut flags = DlpackFlags::empty();
        flags.set(DlpackFlags::READ_ONLY, self.is_read_only());
        self.export(consumer, |managed: &mut DLManagedTensorVersioned| {
            managed.flags = flags;
        })
    }

    /// As [`into_dlpack`](Tensor::into_dlpack), for a library that takes the struct of DLPack before
    /// 1.0.
    ///
    /// ```
    /// use gridcall_view::{DType, Order, Place, Tensor};
    /// # let (address, owner) = (0x7000, ());
    /// # // SAFETY: nothing uses the address.
    /// # let x = unsafe {
    /// #     Tensor::from_parts(
    /// #         address, DType::F32, &[2, 3], None, Place::Device(0), Order::Settled, Box::new(owner),
    /// #     )
    /// # }?;
    /// let given = x.into_legacy_dlpack(None)?;
    /// // SAFETY: it is ours again, and nobody used it.
    /// let back = unsafe { Tensor::from_dlpack(given, Order::Settled) }?;
    /// assert_eq!(back.shape(), [2, 3]);
    /// # Ok::<(), gridcall_view::ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the tensor is not to be written, which that struct cannot say, or the driver refuses; the
    /// tensor is dropped then.
    pub fn into_legacy_dlpack(
        self,
        consumer: Option<StreamRef<'_>>,
    ) -> Result<legacy::Dlpack, ViewError> {
        if self.is_read_only() {
            return Err(ViewError::other(
                "the array is read-only, which DLPack before 1.0 cannot say; ask for `max_version` (1, 0) or later",
            ));
        }
        self.export(consumer, |_: &mut DLManagedTensor| {})
    }

    fn export<M: ManagedTensorBase>(
        self,
        consumer: Option<StreamRef<'_>>,
        finish: impl FnOnce(&mut M),
    ) -> Result<Managed<M>, ViewError> {
        if let Some(stream) = consumer {
            let joined = Joined::new(stream);
            // One of the streams may be a default stream, which is of whatever context is current.
            in_context(joined.context(), || {
                joined.before(self.order, 0)?;
                self.uses.before(joined)
            })?;
        }
        let mut shape = numbers(self.shape())?;
        let mut strides = numbers(self.strides())?;
        let tensor = self.to_dl_tensor(shape.as_mut_ptr(), strides.as_mut_ptr())?;
        let mut exported = Box::new(Exported {
            managed: M::from_parts(tensor, ptr::null_mut(), Some(delete::<M>)),
            _shape: shape,
            _strides: strides,
            _tensor: self,
        });
        finish(&mut exported.managed);
        let raw = ManuallyDrop::new(exported);
        let raw: *const Exported<M> = &raw const **raw;
        // SAFETY: the box is initialised, not used elsewhere, and its struct stands first in it;
        // shape and strides do not move with it; its deleter frees it once.
        let managed = unsafe { Managed::from_raw(raw.cast_mut().cast()) };
        managed.map_err(|error| ViewError::other(format!("cannot be exported: {error}")))
    }

    /// The tensor as DLPack has it, with its shape and strides as `numbers` gives them.
    pub(crate) fn to_dl_tensor(
        &self,
        shape: *mut i64,
        strides: *mut i64,
    ) -> Result<DLTensor, ViewError> {
        let address = match self.len() {
            0 => 0,
            _ => usize::try_from(self.pointer()).map_err(|_| too_large())?,
        };
        Ok(DLTensor {
            data: ptr::without_provenance_mut::<c_void>(address),
            device: self.device,
            ndim: i32::try_from(self.shape().len()).map_err(|_| too_large())?,
            dtype: dtype::to_dlpack(self.dtype()),
            shape,
            strides,
            byte_offset: 0,
        })
    }

    /// Another tensor of the same memory, which `owner` keeps.
    ///
    /// # Safety
    ///
    /// As [`from_parts`](Tensor::from_parts).
    #[cfg(feature = "pyo3")]
    pub(crate) unsafe fn again(
        &self,
        order: crate::Order,
        owner: crate::foreign::Owner,
    ) -> Result<Tensor, ViewError> {
        // SAFETY: passed on to the caller; the rest is what this tensor was made with.
        let mut tensor = unsafe {
            Tensor::from_parts(
                self.pointer(),
                self.dtype(),
                self.shape(),
                Some(self.strides()),
                self.place(),
                order,
                owner,
            )
        }?;
        tensor.device = self.device;
        tensor.description.read_only = self.is_read_only();
        Ok(tensor)
    }

    #[cfg(all(test, feature = "pyo3"))]
    pub(crate) fn forbid_writing(&mut self) {
        self.description.read_only = true;
    }

    /// Where DLPack says that the memory is.
    #[cfg(feature = "pyo3")]
    pub(crate) fn dl_device(&self) -> dlpark::ffi::DLDevice {
        self.device
    }
}

/// As DLPack has shape and strides.
pub(crate) fn numbers<N: Copy + TryInto<i64>>(values: &[N]) -> Result<Vec<i64>, ViewError> {
    values
        .iter()
        .map(|&value| value.try_into().map_err(|_| too_large()))
        .collect()
}

#[cold]
fn too_large() -> ViewError {
    ViewError::other("its dimensions are too large for DLPack")
}

/// # Safety
///
/// `managed` must be one that `export` made, and is not used again.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    // SAFETY: the struct stands first in the box that was leaked.
    drop(unsafe { Box::from_raw(managed.cast::<Exported<M>>()) });
}
