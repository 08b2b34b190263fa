//! DLPack's C exchange API for tensors of ours: what another library calls without Python's methods.
//!
//! None of the functions synchronises. All tensors of ours are worked on from the legacy default
//! stream, which is therefore the current one.

use std::{
    ffi::{CString, c_char, c_void},
    ptr::{self, NonNull},
    slice,
};

use dlpark::ffi::{
    DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackVersion, DLTensor,
};
use pyo3::{Borrowed, Bound, Py, PyAny, PyErr, PyResult, Python, types::PyCapsule};

use super::PyTensor;
use crate::{
    ForeignStream, Order, Place, Tensor, ViewError,
    dlpack::from_dlpack,
    foreign::{Memory, Owner, primary},
};

/// The table as an attribute of the type.
pub(super) fn capsule(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
    let table = NonNull::from(&TABLE).cast();
    // SAFETY: the table is static, and there is nothing to let go.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, table, c"dlpack_exchange_api", None)
    };
    capsule.map(Bound::unbind)
}

/// Never written to.
struct Table(#[expect(dead_code, reason = "read by other libraries")] DLPackExchangeAPI);

// SAFETY: its one pointer is null.
unsafe impl Sync for Table {}

static TABLE: Table = Table(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: 1, minor: 3 },
        prev_api: ptr::null_mut(),
    },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(export),
    managed_tensor_to_py_object_no_sync: Some(import),
    dltensor_from_py_object_no_sync: Some(borrow),
    current_work_stream: Some(current_work_stream),
});

const ORDER: Order = Order::Stream(ForeignStream::LEGACY_DEFAULT);

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// # Safety
///
/// As DLPack says of the function; attached to Python it need not be.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<SetError>,
) -> i32 {
    // SAFETY: the caller passes a tensor.
    let prototype = unsafe { &*prototype };
    // SAFETY: its device, type and shape are set.
    match unsafe { allocated(prototype) } {
        Ok(tensor) => {
            // SAFETY: the caller provides the place.
            unsafe { *out = tensor };
            0
        }
        Err(error) => {
            let text = CString::new(error.to_string()).unwrap_or_default();
            if let Some(set_error) = set_error {
                // SAFETY: the caller's own function, with strings that are read at once.
                unsafe { set_error(error_ctx, c"RuntimeError".as_ptr(), text.as_ptr()) };
            }
            -1
        }
    }
}

/// # Safety
///
/// The tensor's `shape` must point to `ndim` numbers.
unsafe fn allocated(prototype: &DLTensor) -> Result<*mut DLManagedTensorVersioned, ViewError> {
    let device = prototype.device;
    if device.device_type != DLDeviceType::CUDA {
        return Err(ViewError::other(format!(
            "memory of CUDA devices (2) is allocated here, and the prototype is on one of type {}",
            device.device_type.0
        )));
    }
    let dtype = from_dlpack(prototype.dtype)?;
    let contradiction = || ViewError::other("the prototype's shape is none");
    let rank = usize::try_from(prototype.ndim).map_err(|_| contradiction())?;
    let shape: &[i64] = match (rank, prototype.shape.is_null()) {
        (0, _) => &[],
        (_, true) => return Err(contradiction()),
        // SAFETY: passed on to the caller.
        (_, false) => unsafe { slice::from_raw_parts(prototype.shape, rank) },
    };
    let shape: Vec<usize> = shape
        .iter()
        .map(|&extent| usize::try_from(extent).map_err(|_| contradiction()))
        .collect::<Result<_, _>>()?;
    let bytes = if shape.contains(&0) {
        0
    } else {
        shape
            .iter()
            .try_fold(dtype.size(), |bytes, &extent| bytes.checked_mul(extent))
            .ok_or_else(contradiction)?
    };
    let (pointer, owner): (u64, Owner) = match bytes {
        0 => (0, Box::new(())),
        _ => {
            let memory = Memory::new(primary(device.device_id)?, bytes)?;
            (memory.pointer(), Box::new(memory))
        }
    };
    let place = Place::Device(device.device_id);
    // SAFETY: the owner keeps as many bytes; whoever has the tensor works on the stream.
    let tensor = unsafe { Tensor::from_parts(pointer, dtype, &shape, None, place, ORDER, owner) }?;
    Ok(tensor.into_dlpack(None)?.into_raw())
}

/// # Safety
///
/// As DLPack says of the function.
unsafe extern "C" fn export(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> i32 {
    // SAFETY: passed on to the caller.
    unsafe {
        give(object, out, |tensor| {
            Ok(tensor.again()?.into_dlpack(None)?.into_raw())
        })
    }
}

/// # Safety
///
/// As DLPack says of the function.
unsafe extern "C" fn borrow(object: *mut c_void, out: *mut DLTensor) -> i32 {
    // SAFETY: passed on to the caller.
    unsafe { give(object, out, PyTensor::to_dl_tensor) }
}

/// # Safety
///
/// As DLPack says of the function.
unsafe extern "C" fn import(tensor: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> i32 {
    // SAFETY: whoever calls this is attached to Python.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the tensor is given away by the caller, whose work on it is on the current stream.
    let tensor = unsafe { Tensor::from_dlpack_ptr(tensor, ORDER) };
    let object = tensor
        .and_then(PyTensor::new)
        .map_err(PyErr::from)
        .and_then(|tensor| Bound::new(py, tensor));
    match object {
        Ok(object) => {
            // SAFETY: the caller provides the place.
            unsafe { *out = object.into_ptr().cast() };
            0
        }
        Err(error) => raise(py, error),
    }
}

/// # Safety
///
/// As DLPack says of the function.
unsafe extern "C" fn current_work_stream(
    device_type: DLDeviceType,
    _: i32,
    out: *mut *mut c_void,
) -> i32 {
    let stream = match device_type {
        DLDeviceType::CUDA | DLDeviceType::CUDAHOST | DLDeviceType::CUDAMANAGED => {
            ForeignStream::LEGACY_DEFAULT.raw()
        }
        _ => ptr::null_mut(),
    };
    // SAFETY: the caller provides the place.
    unsafe { *out = stream };
    0
}

/// Writes what `read` gives of a tensor of ours to `out`.
///
/// # Safety
///
/// `object` must be a Python object, `out` a place for the answer, and the caller attached to Python.
unsafe fn give<R>(
    object: *mut c_void,
    out: *mut R,
    read: impl FnOnce(&PyTensor) -> Result<R, ViewError>,
) -> i32 {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller, who holds the object meanwhile.
    let object: Borrowed<'_, '_, PyAny> = unsafe { Borrowed::from_ptr(py, object.cast()) };
    let answer = object
        .cast::<PyTensor>()
        .map_err(PyErr::from)
        .and_then(|tensor| Ok(read(tensor.get())?));
    match answer {
        Ok(answer) => {
            // SAFETY: passed on to the caller.
            unsafe { out.write(answer) };
            0
        }
        Err(error) => raise(py, error),
    }
}

fn raise(py: Python<'_>, error: PyErr) -> i32 {
    error.restore(py);
    -1
}
