//! Tensors of ours as Python sees them: capsules of DLPack.

use std::{ffi::CStr, ptr::NonNull};

use dlpark::{
    Managed, ManagedTensorBase,
    ffi::{DLManagedTensor, DLManagedTensorVersioned},
};
use pyo3::{Bound, PyResult, Python, exceptions::PyRuntimeError, ffi, types::PyCapsule};

use crate::{StreamRef, Tensor};

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
        capsule(py, self.into_dlpack(consumer)?)
    }
}

/// A capsule that owns a tensor until somebody takes it.
pub(super) fn capsule<M: Named>(
    py: Python<'_>,
    tensor: Managed<M>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let Some(raw) = NonNull::new(tensor.into_raw()) else {
        return Err(PyRuntimeError::new_err("a tensor without an address"));
    };
    // SAFETY: the tensor is owned by the capsule, whose destructor lets it go if nobody took it.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, raw.cast(), M::NAME, Some(let_go::<M>))
    };
    if capsule.is_err() {
        // SAFETY: no capsule has it.
        drop(unsafe { Managed::from_raw(raw.as_ptr()) });
    }
    capsule
}

/// A struct of DLPack, and what a capsule with one is called before it is taken.
pub(super) trait Named: ManagedTensorBase {
    const NAME: &'static CStr;
}

impl Named for DLManagedTensorVersioned {
    const NAME: &'static CStr = c"dltensor_versioned";
}

impl Named for DLManagedTensor {
    const NAME: &'static CStr = c"dltensor";
}

/// # Safety
///
/// `object` must be one that `capsule` made.
unsafe extern "C" fn let_go<M: Named>(object: *mut ffi::PyObject) {
    // SAFETY: an object; whoever took the tensor gave the capsule another name.
    if unsafe { ffi::PyCapsule_IsValid(object, M::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: the capsule has this name.
    let raw = unsafe { ffi::PyCapsule_GetPointer(object, M::NAME.as_ptr()) };
    // SAFETY: nobody took it.
    drop(unsafe { Managed::<M>::from_raw(raw.cast()) });
}
