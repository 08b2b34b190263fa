//! The libraries whose words are known: what they call an element type, and what helps.

use std::borrow::Cow;

use pyo3::{
    Bound, PyResult,
    types::{PyAnyMethods, PyString, PyStringMethods, PyTupleMethods, PyType, PyTypeMethods},
};

use crate::{DType, ViewError};

/// The library of an array's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    Torch,
    Cupy,
    Numpy,
    Jax,
    Numba,
    Other,
}

impl Library {
    /// The library of a type, or of the first of its bases that is of a known one.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Library> {
        for base in ty.mro().iter() {
            let module = base.getattr("__module__")?;
            // A metaclass may make anything of it.
            let Ok(module) = module.cast::<PyString>() else {
                continue;
            };
            let module = module.to_cow()?;
            let library = match module.split('.').next() {
                Some("torch") => Library::Torch,
                Some("cupy") => Library::Cupy,
                Some("numpy") => Library::Numpy,
                Some("jax" | "jaxlib") => Library::Jax,
                Some("numba" | "numba_cuda") => Library::Numba,
                _ => continue,
            };
            return Ok(library);
        }
        Ok(Library::Other)
    }

    /// Whether memory that the library gets back is reused in the order of its streams only.
    pub(super) fn frees_in_order(self) -> bool {
        matches!(self, Library::Torch | Library::Cupy)
    }

    /// The element type as the library writes it.
    fn dtype(self, dtype: DType) -> Cow<'static, str> {
        let name = numpy_name(dtype);
        match self {
            Library::Torch => format!("torch.{name}").into(),
            Library::Cupy => format!("cupy.{name}").into(),
            Library::Numpy | Library::Numba => format!("numpy.{name}").into(),
            Library::Jax => format!("jax.numpy.{name}").into(),
            Library::Other => name.into(),
        }
    }

    /// The array holds others than the kernel takes.
    #[cold]
    pub(super) fn wrong_type(self, expected: DType, found: DType) -> ViewError {
        let wanted = self.dtype(expected);
        let cure = match self {
            Library::Torch => format!("convert it first: `.to({wanted})`"),
            Library::Cupy | Library::Jax => format!("convert it first: `.astype({wanted})`"),
            Library::Numpy | Library::Numba | Library::Other => {
                format!("convert it to {wanted} first")
            }
        };
        ViewError::wrong_type(expected, self.dtype(found), cure)
    }

    /// What makes the elements follow one another.
    pub(super) fn make_contiguous(self) -> &'static str {
        match self {
            Library::Torch => "make it contiguous first: `.contiguous()`",
            Library::Cupy => "make it contiguous first: `cupy.ascontiguousarray(..)`",
            _ => "make it contiguous first",
        }
    }

    /// What brings an array of the host to the GPU.
    pub(super) fn on_the_host(self) -> &'static str {
        match self {
            Library::Torch => {
                "the tensor is in host memory; copy it to the GPU first: `.to(\"cuda\")`"
            }
            Library::Numpy => {
                "the array is in host memory; copy it to the GPU first: `cupy.asarray(..)` or `torch.from_numpy(..).to(\"cuda\")`"
            }
            Library::Jax => {
                "the array is in host memory; copy it to the GPU first: `jax.device_put(.., jax.devices(\"gpu\")[0])`"
            }
            _ => "the array is in host memory; copy it to the GPU first",
        }
    }
}

/// NumPy's name of an element type, which PyTorch, CuPy and JAX share.
pub(super) fn numpy_name(dtype: DType) -> &'static str {
    NAMES
        .iter()
        .find(|(_, ours)| *ours == dtype)
        .map_or("?", |(name, _)| name)
}

/// The element type of NumPy's name for it, of `ml_dtypes` too.
pub(super) fn by_numpy_name(name: &str) -> Option<DType> {
    NAMES
        .iter()
        .find(|(theirs, _)| *theirs == name)
        .map(|(_, dtype)| *dtype)
}

const NAMES: [(&str, DType); 23] = [
    ("bool", DType::Bool),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("complex64", DType::Complex64),
    ("complex128", DType::Complex128),
    ("float8_e3m4", DType::F8E3M4),
    ("float8_e4m3", DType::F8E4M3),
    ("float8_e4m3b11fnuz", DType::F8E4M3B11Fnuz),
    ("float8_e4m3fn", DType::F8E4M3Fn),
    ("float8_e4m3fnuz", DType::F8E4M3Fnuz),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e5m2fnuz", DType::F8E5M2Fnuz),
    ("float8_e8m0fnu", DType::F8E8M0Fnu),
];
