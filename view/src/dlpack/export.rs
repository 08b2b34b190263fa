//! Hands a tensor on as one of DLPack.

use std::{ffi::c_void, mem::ManuallyDrop};

use dlpark::{
    DlpackFlags,
    ffi::{DLManagedTensorVersioned, DLPackVersion, DLTensor},
    versioned::Dlpack,
};

use super::{Tensor, dtype};
use crate::{StreamRef, ViewError, foreign::Joined};

/// A tensor of ours in the struct of DLPack. The struct stands first: its address is the box's.
#[repr(C)]
struct Exported {
    managed: DLManagedTensorVersioned,
    shape: Vec<i64>,
    strides: Vec<i64>,
    tensor: Tensor,
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
    pub fn into_dlpack(self, consumer: Option<StreamRef<'_>>) -> Result<Dlpack, ViewError> {
        if let Some(stream) = consumer {
            let joined = Joined::new(stream);
            joined.before(self.order)?;
            self.uses.before(joined)?;
        }
        let shape = numbers(self.shape())?;
        let strides = numbers(self.strides())?;
        let mut flags = DlpackFlags::empty();
        flags.set(DlpackFlags::READ_ONLY, self.is_read_only());
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
            flags,
            dl_tensor: DLTensor {
                data: std::ptr::without_provenance_mut::<c_void>(
                    usize::try_from(self.pointer()).map_err(|_| too_large())?,
                ),
                device: self.device,
                ndim: i32::try_from(self.shape().len()).map_err(|_| too_large())?,
                dtype: dtype::to_dlpack(self.dtype()),
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
        };
        let mut exported = Box::new(Exported {
            managed,
            shape,
            strides,
            tensor: self,
        });
        exported.managed.dl_tensor.shape = exported.shape.as_mut_ptr();
        exported.managed.dl_tensor.strides = exported.strides.as_mut_ptr();
        let raw = ManuallyDrop::new(exported);
        let raw: *const Exported = &raw const **raw;
        // SAFETY: the box is initialised, not used elsewhere, and its struct stands first in it;
        // shape and strides do not move with it; its deleter frees it once.
        let managed = unsafe { Dlpack::from_raw(raw.cast_mut().cast()) };
        managed.map_err(|error| ViewError::other(format!("cannot be exported: {error}")))
    }
}

fn numbers<N: Copy + TryInto<i64>>(values: &[N]) -> Result<Vec<i64>, ViewError> {
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
/// `managed` must be one that `into_dlpack` made, and is not used again.
unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the struct stands first in the box that was leaked.
    drop(unsafe { Box::from_raw(managed.cast::<Exported>()) });
}
