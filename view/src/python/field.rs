//! Attributes by their descriptors, without a look at the object's own dictionary.

use std::{ffi::c_void, ptr::NonNull};

use pyo3::{
    Borrowed, Bound, PyAny, PyResult, ffi,
    types::{PyAnyMethods, PyType, PyTypeMethods},
};

/// An attribute that the type itself answers for, without a look at the object's own.
#[derive(Clone, Copy)]
pub(super) struct Field {
    descriptor: NonNull<ffi::PyObject>,
    get: ffi::descrgetfunc,
}

// SAFETY: the descriptor is kept for good and never changed; Python's own locks guard its count.
unsafe impl Send for Field {}
// SAFETY: as for `Send`.
unsafe impl Sync for Field {}

impl Field {
    pub(super) fn of(ty: &Bound<'_, PyType>, name: &str) -> PyResult<Option<Field>> {
        let Some(descriptor) = ty.getattr_opt(name)? else {
            return Ok(None);
        };
        let kind = descriptor.get_type();
        // SAFETY: a type and the number of one of its slots.
        let get = unsafe { ffi::PyType_GetSlot(kind.as_type_ptr(), ffi::Py_tp_descr_get) };
        // SAFETY: as above.
        let set = unsafe { ffi::PyType_GetSlot(kind.as_type_ptr(), ffi::Py_tp_descr_set) };
        let (Some(get), false) = (NonNull::new(get), set.is_null()) else {
            return Ok(None);
        };
        let Some(descriptor) = NonNull::new(descriptor.into_ptr()) else {
            return Ok(None);
        };
        Ok(Some(Field {
            descriptor,
            // SAFETY: that is what the slot holds.
            get: unsafe { std::mem::transmute::<NonNull<c_void>, ffi::descrgetfunc>(get) },
        }))
    }

    #[inline(always)]
    pub(super) fn get<'py>(&self, object: Borrowed<'_, 'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let object_ptr = object.as_ptr();
        let ty = object.get_type_ptr().cast();
        // SAFETY: the descriptor's own function; it checks that the object is of its type.
        let value = unsafe { (self.get)(self.descriptor.as_ptr(), object_ptr, ty) };
        // SAFETY: a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(object.py(), value) }
    }
}
