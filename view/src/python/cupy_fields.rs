//! The attributes of CuPy's arrays as the fields of C that they are, which is faster than to ask
//! for them: an integer that Python sees is an object made for the question.

use std::ffi::CStr;

use pyo3::{
    Borrowed, Bound, PyAny, PyResult, Python, ffi,
    types::{PyAnyMethods, PyDict, PyType, PyTypeMethods},
};

use super::words::{half_at, is_locked, only, word_at};

/// Where the fields are: words by their index, and halves of words by theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    data: usize,
    dtype: usize,
    size: usize,
    /// A half.
    contiguous: usize,
    /// The type of `data`, kept for good.
    memory: usize,
    /// Of that type.
    pointer: usize,
    /// Of that type, a half.
    device: usize,
}

/// What the fields of a contiguous array say.
pub(super) struct Contiguous {
    pub(super) dtype: *mut ffi::PyObject,
    pub(super) size: usize,
    pub(super) pointer: usize,
    pub(super) device: i32,
}

/// Makes arrays without memory: of other shapes, types, addresses and devices each, and each with
/// another answer to whether it is contiguous in C's or in Fortran's order.
const SAMPLES: &CStr = c"
import cupy
from cupy.cuda import MemoryPointer, UnownedMemory
def array(shape, dtype, address, offset, device, strides=None):
    memory = UnownedMemory(address, 1 << 20, None, device)
    return cupy.ndarray(shape, dtype, MemoryPointer(memory, offset), strides=strides)
samples = [
    array((3, 5), 'float32', 0x7123456000, 0, 5),
    array((7,), 'int64', 0x7223456000, 64, 6),
    array((4, 6), 'int16', 0x7323456000, 128, 7, (2, 8)),
    array((2, 9), 'float64', 0x7423456000, 0, 9, (160, 16)),
]
";

struct Sample<'py> {
    array: Bound<'py, PyAny>,
    data: Bound<'py, PyAny>,
}

impl Fields {
    /// Looks for the fields of a type that has the attributes of `cupy.ndarray`.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Option<Fields>> {
        let py = ty.py();
        let module = py.import("cupy")?;
        let base = module.getattr("ndarray")?;
        let memory = module.getattr("cuda")?.getattr("MemoryPointer")?;
        let (base, memory) = (base.cast::<PyType>()?, memory.cast::<PyType>()?);
        if !is_locked(py)? || !ty.is_subclass(base)? {
            return Ok(None);
        }
        for attribute in ["data", "dtype", "size", "_c_contiguous"] {
            // A class of somebody's own may answer otherwise.
            if !ty.getattr(attribute)?.is(&base.getattr(attribute)?) {
                return Ok(None);
            }
        }
        let samples = Sample::make(py)?;
        let is_plain = |sample: &Sample<'_>| {
            sample.array.get_type().is(base) && sample.data.get_type().is(memory)
        };
        if !samples.iter().all(is_plain) {
            return Ok(None);
        }
        let arrays: Vec<_> = samples.iter().map(|sample| sample.array.clone()).collect();
        let memories: Vec<_> = samples.iter().map(|sample| sample.data.clone()).collect();
        let address = |object: &Bound<'_, PyAny>| Ok(object.as_ptr().addr());
        let found = (
            find(&arrays, "data", WORD, address)?,
            find(&arrays, "dtype", WORD, address)?,
            find(&arrays, "size", WORD, |size| size.extract())?,
            find(&arrays, "_c_contiguous", HALF, |is| {
                is.extract::<bool>().map(usize::from)
            })?,
            find(&memories, "ptr", WORD, |pointer| pointer.extract())?,
            find(&memories, "device_id", HALF, |device| device.extract())?,
        );
        let (Some(data), Some(dtype), Some(size), Some(contiguous), Some(pointer), Some(device)) =
            found
        else {
            return Ok(None);
        };
        Ok(Some(Fields {
            data,
            dtype,
            size,
            contiguous,
            // Never given back, so that no other type gets the address.
            memory: memory.clone().into_ptr().addr(),
            pointer,
            device,
        }))
    }

    /// Reads an array, if it is contiguous.
    ///
    /// # Safety
    ///
    /// The object must be of the type whose fields these are.
    #[inline(always)]
    pub(super) unsafe fn contiguous(&self, object: Borrowed<'_, '_, PyAny>) -> Option<Contiguous> {
        let array = object.as_ptr().cast_const();
        // SAFETY: objects of the type have the field there, as all that were looked at.
        if unsafe { half_at(array.cast(), self.contiguous) } != 1 {
            return None;
        }
        // SAFETY: as above.
        let data = unsafe { word_at(array.cast(), self.data) };
        let data = std::ptr::with_exposed_provenance::<ffi::PyObject>(data);
        if data.is_null() {
            return None;
        }
        // SAFETY: the field holds an object, which the array keeps.
        let memory = unsafe { ffi::Py_TYPE(data.cast_mut()) };
        if memory.addr() != self.memory {
            return None;
        }
        // SAFETY: as above.
        let dtype = unsafe { word_at(array.cast(), self.dtype) };
        Some(Contiguous {
            dtype: std::ptr::with_exposed_provenance_mut(dtype),
            // SAFETY: as above.
            size: unsafe { word_at(array.cast(), self.size) },
            // SAFETY: objects of this very type have the field there.
            pointer: unsafe { word_at(data.cast(), self.pointer) },
            // SAFETY: as above.
            device: unsafe { half_at(data.cast(), self.device) }.cast_signed(),
        })
    }
}

impl<'py> Sample<'py> {
    fn make(py: Python<'py>) -> PyResult<Vec<Sample<'py>>> {
        let globals = PyDict::new(py);
        py.run(SAMPLES, Some(&globals), None)?;
        let samples = globals.as_any().get_item("samples")?;
        let sample = |array: Bound<'py, PyAny>| {
            let data = array.getattr("data")?;
            Ok(Sample { array, data })
        };
        samples
            .try_iter()?
            .map(|array| array.and_then(sample))
            .collect()
    }
}

/// The one place at which all objects, which are of one type, have what they say of an attribute.
/// `read` reads one of so many bytes; `number` makes a number of the attribute.
fn find<'py>(
    objects: &[Bound<'py, PyAny>],
    attribute: &str,
    (read, bytes): Read,
    number: impl Fn(&Bound<'py, PyAny>) -> PyResult<usize>,
) -> PyResult<Option<usize>> {
    let Some(first) = objects.first() else {
        return Ok(None);
    };
    let size: usize = first.get_type().getattr("__basicsize__")?.extract()?;
    let said = |object: &Bound<'py, PyAny>| number(&object.getattr(attribute)?);
    let said: Vec<usize> = objects.iter().map(said).collect::<PyResult<_>>()?;
    Ok(only((0..size / bytes).filter(|&index| {
        objects.iter().zip(&said).all(|(object, said)| {
            // SAFETY: an object of the type has so many bytes, and is held.
            let found = unsafe { read(object.as_ptr(), index) };
            found == *said
        })
    })))
}

/// Reads a part of an object by its index; and the bytes of such a part.
type Read = (unsafe fn(*const ffi::PyObject, usize) -> usize, usize);

const WORD: Read = (
    // SAFETY: whoever calls it says that there is one.
    |object, index| unsafe { word_at(object.cast(), index) },
    size_of::<usize>(),
);

const HALF: Read = (
    // SAFETY: whoever calls it says that there is one.
    |object, index| unsafe { half_at(object.cast(), index) as usize },
    size_of::<u32>(),
);
