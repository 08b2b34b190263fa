//! Python's DLPack protocol: `__dlpack_device__` and `__dlpack__`.

use std::{ffi::CStr, ptr::NonNull};

use dlpark::{
    Managed, ManagedTensorBase,
    ffi::{DLDeviceType, DLManagedTensor, DLManagedTensorVersioned},
};
use pyo3::{
    Borrowed, Bound, PyAny, PyResult,
    exceptions::{PyBufferError, PyTypeError},
    ffi, intern,
    sync::critical_section::with_critical_section,
    types::{PyAnyMethods, PyCapsule, PyCapsuleMethods, PyDict, PyDictMethods},
};

use super::{
    library::Library,
    unread::{Read, not_exported, refused},
};
use crate::{
    ForeignStream, Order,
    dlpack::describe,
    foreign::{Description, Owner},
};

/// An array that a capsule gave, with the owner of its memory.
pub(super) type Imported = (Description, Order, Owner);

/// Asks an object for a capsule and takes it over.
///
/// Of a library whose current stream is known, no ordering is asked for: `current` gives it. Any
/// other is asked to order its work into the legacy default stream, which the launch then joins.
pub(super) fn import(
    object: Borrowed<'_, '_, PyAny>,
    library: Library,
    current: impl FnOnce(i32) -> PyResult<Option<Order>>,
) -> Read<Imported> {
    let py = object.py();
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let (device_type, device_id): (i64, i32) = device.extract()?;
    let cuda = device_type == i64::from(DLDeviceType::CUDA.0);
    if device_type == i64::from(DLDeviceType::CPU.0) {
        return Err(refused(library.on_the_host()));
    }
    let known = if cuda { current(device_id)? } else { None };
    let order = known.unwrap_or(Order::Stream(ForeignStream::LEGACY_DEFAULT));
    let arguments = PyDict::new(py);
    if cuda {
        let stream = if known.is_some() { -1 } else { 1 };
        arguments.set_item(intern!(py, "stream"), stream)?;
    }
    let capsule = call(object, &arguments).map_err(|error| not_exported(py, error))?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("`__dlpack__` gave something else than a capsule"))?;
    take(capsule, order)
}

/// Old producers know no `max_version`.
fn call<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    arguments: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let method = object.getattr(intern!(py, "__dlpack__"))?;
    let asked = arguments.copy()?;
    asked.set_item(intern!(py, "max_version"), (1, 3))?;
    match method.call((), Some(&asked)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call((), Some(arguments)),
        answer => answer,
    }
}

/// Takes over the tensor of a capsule.
fn take(capsule: &Bound<'_, PyCapsule>, order: Order) -> Read<Imported> {
    // Without a lock for all of Python, two threads could claim one capsule.
    match with_critical_section(capsule, || claim(capsule))? {
        // SAFETY: the capsule's name said what it is, and does not any more.
        Claimed::Versioned(raw) => unsafe { own(raw.as_ptr(), order) },
        // SAFETY: as above.
        Claimed::Legacy(raw) => unsafe { own(raw.as_ptr(), order) },
    }
}

enum Claimed {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

/// The tensor of a capsule, which is renamed, so that nobody else takes it.
fn claim(capsule: &Bound<'_, PyCapsule>) -> PyResult<Claimed> {
    if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let raw = capsule.pointer_checked(Some(c"dltensor_versioned"))?;
        rename(capsule, c"used_dltensor_versioned")?;
        Ok(Claimed::Versioned(raw.cast()))
    } else if capsule.is_valid_checked(Some(c"dltensor")) {
        let raw = capsule.pointer_checked(Some(c"dltensor"))?;
        rename(capsule, c"used_dltensor")?;
        Ok(Claimed::Legacy(raw.cast()))
    } else {
        Err(PyBufferError::new_err(
            "the capsule holds no tensor of DLPack, or it was taken already: a capsule can be taken once",
        ))
    }
}

fn rename(capsule: &Bound<'_, PyCapsule>, name: &'static CStr) -> PyResult<()> {
    // SAFETY: the capsule is one, and the name lives for good.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } != 0 {
        return Err(pyo3::PyErr::fetch(capsule.py()));
    }
    Ok(())
}

/// # Safety
///
/// `raw` must be a tensor that nobody else takes over.
unsafe fn own<M: ManagedTensorBase + 'static>(raw: *mut M, order: Order) -> Read<Imported> {
    // SAFETY: passed on to the caller.
    let managed = unsafe { Managed::from_raw(raw) }
        .map_err(|error| refused(format!("not a tensor of DLPack 1: {error}")))?;
    let read_only = managed.flags().contains(dlpark::DlpackFlags::READ_ONLY);
    // SAFETY: it is not changed while it is owned.
    let tensor = unsafe { managed.tensor() };
    // SAFETY: as above; shape and strides have `ndim` numbers.
    let description = unsafe { describe(tensor, read_only) }?;
    Ok((description, order, Box::new(managed.into_deleter())))
}
