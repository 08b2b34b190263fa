//! CuPy's arrays by their own attributes, which is faster than any protocol they speak.

use std::{
    ffi::{c_int, c_void},
    ptr::NonNull,
};

use pyo3::{
    Borrowed, Bound, PyAny, PyErr, PyResult, Python, ffi, intern,
    types::{
        PyAnyMethods, PyCapsule, PyCapsuleMethods, PyDict, PyDictMethods, PyTuple, PyTupleMethods,
        PyType,
    },
};

use super::{
    cupy_fields::Fields,
    element,
    field::Field,
    unread::{Read, refused},
};
use crate::{
    ForeignStream, Place,
    foreign::{Description, Dims, Elements, one_device},
};

/// The attributes of a type of arrays, and of what their memory hangs on.
#[derive(Clone, Copy)]
pub(super) struct Cupy {
    data: Field,
    dtype: Field,
    size: Field,
    contiguous: Field,
    /// Of `cupy.cuda.MemoryPointer`.
    pointer: Field,
    device: Field,
    /// The same as fields of C, if they were found.
    fields: Option<Fields>,
    current_stream: CurrentStream,
}

impl Cupy {
    /// The attributes of a type, if it has all of them.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Option<Cupy>> {
        let py = ty.py();
        let memory = py.import("cupy.cuda")?.getattr("MemoryPointer")?;
        let memory = memory.cast::<PyType>()?;
        let fields = (
            Field::of(ty, "data")?,
            Field::of(ty, "dtype")?,
            Field::of(ty, "size")?,
            Field::of(ty, "_c_contiguous")?,
            Field::of(memory, "ptr")?,
            Field::of(memory, "device_id")?,
        );
        let (Some(data), Some(dtype), Some(size), Some(contiguous), Some(pointer), Some(device)) =
            fields
        else {
            return Ok(None);
        };
        Ok(Some(Cupy {
            data,
            dtype,
            size,
            contiguous,
            pointer,
            device,
            // Whatever is raised here, the attributes are there.
            fields: Fields::of(ty).ok().flatten(),
            current_stream: CurrentStream::find(py)?,
        }))
    }

    /// The array and the stream on which CuPy works now, if the array is contiguous. Where anything
    /// else is to be said, [`import`](Cupy::import) says it.
    #[inline(always)]
    pub(super) fn contiguous(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Option<(Elements, ForeignStream)> {
        let (dtype, size, pointer, device);
        if let Some(fields) = &self.fields {
            // SAFETY: the object is of the type whose fields these are.
            let array = unsafe { fields.contiguous(object) }?;
            // SAFETY: the field holds an object, which the array keeps.
            let of = unsafe { Borrowed::from_ptr_or_opt(object.py(), array.dtype) }?;
            dtype = element::of_dtype(of).ok()?;
            (size, pointer, device) = (array.size, array.pointer as u64, array.device);
        } else {
            // SAFETY: one of Python's singletons.
            let truth = unsafe { ffi::Py_True() };
            if self.contiguous.get(object).ok()?.as_ptr() != truth {
                return None;
            }
            dtype = element::of_dtype(self.dtype.get(object).ok()?.as_borrowed()).ok()?;
            let length = integer(&self.size.get(object).ok()?).ok()?;
            size = usize::try_from(length).ok()?;
            (pointer, device) = self.memory(object).ok()?;
        }
        let elements = Elements::new(pointer, size, dtype, Place::Device(device))?;
        let stream = self.current_stream.stream(object.py(), device).ok()?;
        Some((elements, stream))
    }

    /// The array and the stream on which CuPy works now.
    #[cold]
    pub(super) fn import(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Read<(Description, ForeignStream)> {
        let dtype = element::of_dtype(self.dtype.get(object)?.as_borrowed())?;
        let (pointer, device) = self.memory(object)?;
        let dims = dims(object, dtype.size())?;
        let array = Description::new(pointer, dtype, dims, Place::Device(device), false)?;
        let stream = self.current_stream.stream(object.py(), device)?;
        Ok((array, stream))
    }

    /// Where its elements are, and on which device.
    #[inline(always)]
    fn memory(&self, object: Borrowed<'_, '_, PyAny>) -> PyResult<(u64, i32)> {
        let data = self.data.get(object)?;
        let pointer = integer(&self.pointer.get(data.as_borrowed())?)?;
        let device = if one_device() {
            0
        } else {
            integer(&self.device.get(data.as_borrowed())?)?
        };
        let device = i32::try_from(device).unwrap_or(i32::MAX);
        Ok((u64::from_ne_bytes(pointer.to_ne_bytes()), device))
    }
}

/// Shape and strides, in elements, of an array in NumPy's manner.
pub(super) fn dims(object: Borrowed<'_, '_, PyAny>, size: usize) -> Read<Dims> {
    let py = object.py();
    let shape = object.getattr(intern!(py, "shape"))?;
    let strides = object.getattr(intern!(py, "strides"))?;
    of_bytes(shape.cast()?, Some(strides.cast()?), size)
}

/// Shape and strides, of which the latter are in bytes.
pub(super) fn of_bytes(
    shape: &Bound<'_, PyTuple>,
    strides: Option<&Bound<'_, PyTuple>>,
    size: usize,
) -> Read<Dims> {
    let shape: Vec<i64> = shape.iter().map(|n| n.extract()).collect::<PyResult<_>>()?;
    let extents: Result<Vec<usize>, _> = shape.iter().map(|&n| usize::try_from(n)).collect();
    let extents =
        extents.map_err(|_| refused(format!("its owner says that it has shape {shape:?}")))?;
    let Some(strides) = strides else {
        return Ok(Dims::row_major(&extents));
    };
    let strides: Vec<isize> = strides
        .iter()
        .map(|n| n.extract())
        .collect::<PyResult<_>>()?;
    if strides.len() != extents.len() {
        return Err(refused(format!(
            "its owner says that it has shape {extents:?} and strides {strides:?} in bytes, of which there must be as many"
        )));
    }
    Dims::new(extents.len(), |index| {
        let (extent, stride, size) = (extents[index], strides[index], size.cast_signed());
        // The stride of one element leads nowhere.
        if stride % size != 0 && extent > 1 {
            return Err(refused(format!(
                "its strides are {strides:?} bytes, not whole elements of {size} bytes, as in a field of a structure; copy the elements to an array of their own"
            )));
        }
        Ok((extent, stride / size))
    })
}

/// An int that fits 64 bits, or an address.
#[inline(always)]
fn integer(object: &Bound<'_, PyAny>) -> PyResult<isize> {
    // SAFETY: an object; anything but an int is refused.
    let number = unsafe { ffi::PyLong_AsSsize_t(object.as_ptr()) };
    if number == -1
        && let Some(error) = PyErr::take(object.py())
    {
        return Err(error);
    }
    Ok(number)
}

/// How CuPy tells its current stream.
#[derive(Clone, Copy)]
pub(super) enum CurrentStream {
    /// By a function that its extension module exports to others.
    Function(unsafe extern "C" fn(c_int) -> isize),
    /// As its users ask.
    Module,
}

impl CurrentStream {
    pub(super) fn find(py: Python<'_>) -> PyResult<CurrentStream> {
        let Ok(module) = py.import("cupy_backends.cuda.stream") else {
            return Ok(CurrentStream::Module);
        };
        let Some(exported) = module.getattr_opt("__pyx_capi__")? else {
            return Ok(CurrentStream::Module);
        };
        let Some(capsule) = exported.cast::<PyDict>()?.get_item("get_stream_ptr")? else {
            return Ok(CurrentStream::Module);
        };
        // The name is the function's signature.
        let function = capsule
            .cast::<PyCapsule>()?
            .pointer_checked(Some(c"intptr_t (int)"));
        Ok(match function {
            Ok(function) => CurrentStream::Function(
                // SAFETY: a function of that signature, which stays as its module does: modules of
                // C are never unloaded.
                unsafe {
                    std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(c_int) -> isize>(
                        function,
                    )
                },
            ),
            Err(_) => CurrentStream::Module,
        })
    }

    #[inline]
    pub(super) fn stream(self, py: Python<'_>, device: i32) -> PyResult<ForeignStream> {
        let stream = match self {
            CurrentStream::Function(function) => {
                // SAFETY: attached to Python, which the function needs.
                let stream = unsafe { function(device) };
                if stream == -1
                    && let Some(error) = PyErr::take(py)
                {
                    return Err(error);
                }
                stream
            }
            CurrentStream::Module => py
                .import("cupy.cuda")?
                .call_method0("get_current_stream")?
                .getattr("ptr")?
                .extract()?,
        };
        let raw = std::ptr::without_provenance_mut(stream.cast_unsigned());
        // SAFETY: the current stream lives while it is current.
        Ok(unsafe { ForeignStream::from_raw(raw) })
    }
}
