//! DLPack's C exchange API: an array's description from a C function, without a capsule.
//!
//! [The table](https://dmlc.github.io/dlpack/latest/python_spec.html) hangs on the type; none of its
//! functions synchronises, and the consumer works on the producer's current stream.

use std::{ffi::c_void, mem::MaybeUninit, ptr};

use dlpark::ffi::{
    DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor,
};
use pyo3::{
    Borrowed, Bound, PyAny, PyErr, PyResult, Python,
    types::{PyAnyMethods, PyCapsule, PyCapsuleMethods, PyType},
};

use super::{
    torch::Direct,
    unread::{Read, not_exported, refused},
};
use crate::{
    ForeignStream, dlpack,
    foreign::{Description, Elements},
};

type FromPy = unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32;
type ManagedFromPy = unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> i32;
type CurrentStream = unsafe extern "C" fn(DLDeviceType, i32, *mut *mut c_void) -> i32;

/// What is called of a table.
pub(super) struct Exchange {
    describe: Describe,
    current_stream: CurrentStream,
    /// What tells the same of PyTorch's tensors, and faster.
    direct: Option<Direct>,
}

#[derive(Clone, Copy)]
enum Describe {
    Borrowed(FromPy),
    Managed(ManagedFromPy),
}

impl Exchange {
    /// The table of a type, if it has one that is understood.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Option<Exchange>> {
        let Some(capsule) = ty.getattr_opt("__dlpack_c_exchange_api__")? else {
            return Ok(None);
        };
        let Ok(capsule) = capsule.cast::<PyCapsule>() else {
            return Ok(None);
        };
        let Ok(table) = capsule.pointer_checked(Some(c"dlpack_exchange_api")) else {
            return Ok(None);
        };
        let mut header = table
            .as_ptr()
            .cast::<DLPackExchangeAPIHeader>()
            .cast_const();
        while !header.is_null() {
            // SAFETY: the capsule's name says what it points to, which lives as long as the process;
            // the header is the same in every version.
            let DLPackExchangeAPIHeader { version, prev_api } = unsafe { *header };
            if version.major == 1 {
                // SAFETY: a table of major version 1 has these fields.
                let table = unsafe { &*header.cast::<DLPackExchangeAPI>() };
                return Ok(Exchange::from_table(table));
            }
            header = prev_api;
        }
        Ok(None)
    }

    fn from_table(table: &DLPackExchangeAPI) -> Option<Exchange> {
        let describe = match (
            table.dltensor_from_py_object_no_sync,
            table.managed_tensor_from_py_object_no_sync,
        ) {
            (Some(borrowed), _) => Describe::Borrowed(borrowed),
            (None, Some(managed)) => Describe::Managed(managed),
            (None, None) => return None,
        };
        Some(Exchange {
            describe,
            current_stream: table.current_work_stream?,
            direct: None,
        })
    }

    /// Looks for what tells the same of PyTorch's tensors of this type, and faster. In their objects,
    /// the word `in_object` holds the address of the C++ object.
    pub(super) fn find_direct(&mut self, ty: &Bound<'_, PyType>, in_object: usize) -> PyResult<()> {
        let Describe::Borrowed(function) = self.describe else {
            return Ok(());
        };
        let official = |object: Borrowed<'_, '_, PyAny>| {
            let mut tensor = MaybeUninit::uninit();
            // SAFETY: the object is a tensor of PyTorch's, as those of the type are.
            unsafe { borrow(function, object, &mut tensor) }.copied()
        };
        self.direct = Direct::find(ty, in_object, &official)?;
        Ok(())
    }

    /// The array and the stream on which its library works now, if the array is contiguous. Where
    /// anything else is to be said, [`import`](Exchange::import) says it.
    #[inline(always)]
    pub(super) fn contiguous(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Option<(Elements, ForeignStream)> {
        if let Some(direct) = &self.direct {
            // SAFETY: the object is of the type for which this was found.
            let (elements, device) = unsafe { direct.contiguous(object) }?;
            return Some((elements, self.stream(object.py(), device)?));
        }
        self.contiguous_by_table(object)
    }

    #[inline(never)]
    fn contiguous_by_table(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Option<(Elements, ForeignStream)> {
        let Describe::Borrowed(function) = self.describe else {
            return None;
        };
        let mut tensor = MaybeUninit::uninit();
        // SAFETY: the object is of the type on which the function was found.
        let tensor = unsafe { borrow(function, object, &mut tensor) }?;
        let device = tensor.device.device_id;
        // SAFETY: the tensor is valid until Python runs again.
        let elements = unsafe { dlpack::elements(tensor) }?;
        Some((elements, self.stream(object.py(), device)?))
    }

    /// The array and the stream on which its library works now.
    #[cold]
    pub(super) fn import(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Read<(Description, ForeignStream)> {
        let py = object.py();
        let failed = || not_exported(py, PyErr::fetch(py));
        let (description, device) = match self.describe {
            Describe::Borrowed(function) => {
                let mut tensor = MaybeUninit::uninit();
                // SAFETY: the object is of the type on which the function was found.
                let tensor = unsafe { borrow(function, object, &mut tensor) };
                let tensor = tensor.ok_or_else(failed)?;
                // SAFETY: the tensor is valid until Python runs again.
                let description = unsafe { dlpack::describe(tensor, false) }?;
                (description, tensor.device.device_id)
            }
            Describe::Managed(function) => {
                let mut managed = ptr::null_mut();
                // SAFETY: the object is of the type on which the function was found; `managed` takes
                // the answer.
                if unsafe { function(object.as_ptr().cast(), &raw mut managed) } != 0 {
                    return Err(failed());
                }
                // SAFETY: the function gave it away. The object keeps the memory once it is let go
                // again.
                let managed = unsafe { dlpark::versioned::Dlpack::from_raw(managed) }
                    .map_err(|error| refused(format!("not a tensor of DLPack 1: {error}")))?;
                let read_only = managed.flags().contains(dlpark::DlpackFlags::READ_ONLY);
                // SAFETY: it is not changed while it is owned.
                let tensor = unsafe { managed.tensor() };
                // SAFETY: as above; shape and strides have `ndim` numbers.
                let description = unsafe { dlpack::describe(tensor, read_only) }?;
                (description, tensor.device.device_id)
            }
        };
        let stream = self.stream(py, device).ok_or_else(failed)?;
        Ok((description, stream))
    }

    /// `None` where Python's exception is set.
    #[inline(always)]
    fn stream(&self, _: Python<'_>, device: i32) -> Option<ForeignStream> {
        let mut stream = ptr::null_mut();
        // Pinned and managed memory is worked on by the GPU's streams too.
        // SAFETY: `stream` takes the answer; attached to Python.
        let code = unsafe { (self.current_stream)(DLDeviceType::CUDA, device, &raw mut stream) };
        // SAFETY: the library's current stream lives while it is current.
        (code == 0).then(|| unsafe { ForeignStream::from_raw(stream) })
    }
}

/// `None` where Python's exception is set.
///
/// # Safety
///
/// The object must be of the type on which the function was found. What the tensor points to is
/// valid until Python runs again.
#[inline(always)]
unsafe fn borrow<'t>(
    function: FromPy,
    object: Borrowed<'_, '_, PyAny>,
    tensor: &'t mut MaybeUninit<DLTensor>,
) -> Option<&'t DLTensor> {
    // SAFETY: passed on to the caller; `tensor` takes the answer.
    let code = unsafe { function(object.as_ptr().cast(), tensor.as_mut_ptr()) };
    // SAFETY: the function succeeded.
    (code == 0).then(|| unsafe { tensor.assume_init_ref() })
}
