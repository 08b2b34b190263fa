//! [`__cuda_stream__`](https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html):
//! the stream objects of Python libraries.

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult,
    exceptions::{PyTypeError, PyValueError},
    intern,
    types::{PyAnyMethods, PyTypeMethods},
};

use crate::ForeignStream;

/// A stream of a Python library, extracted as an argument. Holds the object, which keeps the stream.
#[derive(Debug)]
pub struct PyStream<'py> {
    object: Bound<'py, PyAny>,
    stream: ForeignStream,
}

impl<'py> PyStream<'py> {
    /// The stream.
    #[must_use]
    pub fn stream(&self) -> ForeignStream {
        self.stream
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }
}

impl<'py> FromPyObject<'_, 'py> for PyStream<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let Some(method) = object.getattr_opt(intern!(py, "__cuda_stream__"))? else {
            return Err(PyTypeError::new_err(format!(
                "'{}' object is not a CUDA stream: it has no __cuda_stream__; pass one of CuPy, PyTorch or cuda.core",
                object.get_type().name()?
            )));
        };
        let (version, handle): (i64, u64) = method.call0()?.extract()?;
        if version != 0 {
            return Err(PyValueError::new_err(format!(
                "its __cuda_stream__ is of version {version}, and 0 is understood"
            )));
        }
        let handle = usize::try_from(handle)
            .map_err(|_| PyValueError::new_err(format!("{handle} is not a stream of CUDA")))?;
        // SAFETY: the object keeps the stream, and is held.
        let stream = unsafe { ForeignStream::from_raw(std::ptr::without_provenance_mut(handle)) };
        Ok(PyStream {
            object: object.to_owned(),
            stream,
        })
    }
}
