//! Tensors of ours as Python sees them: capsules of DLPack.

use std::ffi::CStr;

use dlpark::{ffi::DLManagedTensorVersioned, versioned::Dlpack};
use pyo3::{Bound, PyResult, Python, exceptions::PyRuntimeError, ffi, types::PyCapsule};

use crate::{StreamRef, Tensor};

const NAME: &CStr = c"dltensor_versioned";

impl Tensor {
    /// Hands the tensor on to Python as a capsule, which `__dlpack__` of an object may return: see
    /// [`into_dlpack`](Tensor::into_dlpack) for `consumer`. A capsule that nobody takes lets the
    /// tensor go.
    ///
    /// # Errors
    ///
    /// If the driver refuses, or Python has no memory; the tensor is dropped then.
    pub fn into_capsule<'py>(
        self,
        py: Python<'py>,
        consumer: Option<StreamRef<'_>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let tensor = self.into_dlpack(consumer)?;
        let Some(raw) = std::ptr::NonNull::new(tensor.into_raw()) else {
            return Err(PyRuntimeError::new_err("a tensor without an address"));
        };
        // SAFETY: the tensor is owned by the capsule, whose destructor lets it go if nobody took it.
        let capsule = unsafe {
            PyCapsule::new_with_pointer_and_destructor(py, raw.cast(), NAME, Some(let_go))
        };
        if capsule.is_err() {
            // SAFETY: no capsule has it.
            drop(unsafe { Dlpack::from_raw(raw.as_ptr()) });
        }
        capsule
    }
}

/// # Safety
///
/// `capsule` must be one that `into_capsule` made.
unsafe extern "C" fn let_go(capsule: *mut ffi::PyObject) {
    // SAFETY: an object; whoever took the tensor gave the capsule another name.
    if unsafe { ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: the capsule has this name.
    let raw = unsafe { ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()) };
    // SAFETY: nobody took it.
    drop(unsafe { Dlpack::from_raw(raw.cast::<DLManagedTensorVersioned>()) });
}
