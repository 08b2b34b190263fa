//! PyTorch's tensors by the C functions that it exports for compiled models.
//!
//! The function of the exchange API takes a share of the tensor and gives it back; for each, PyTorch
//! takes Python's lock anew, which costs several times what it then tells. [These functions][shim],
//! which PyTorch keeps as they are from version to version, take none: they tell of the tensor at an
//! address. It is the place in the Python object where the C++ object's address was found; that they
//! tell there what the exchange API tells is looked at, when the first tensor of a type is met, with
//! tensors of every element type. If one of them differs, or there is no such function, the exchange
//! API serves.
//!
//! [shim]: https://github.com/pytorch/pytorch/blob/main/torch/csrc/inductor/aoti_torch/c/shim.h

use std::{
    ffi::{CStr, c_void},
    mem::MaybeUninit,
};

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLTensor};
use pyo3::{
    Borrowed, Bound, PyAny, PyErr, PyResult,
    types::{PyAnyMethods, PyDict, PyDictMethods, PyType},
};

use super::words::{is_locked, word_at};
use crate::{
    DType, Place,
    dlpack::{from_dlpack, numbers_at, row_major},
    foreign::{Elements, one_device},
};

/// Answers a question on the tensor at an address; 0 if it could.
type Tell<T> = unsafe extern "C" fn(*mut c_void, *mut T) -> i32;

/// The functions, by their names without `aoti_torch_get_`.
#[derive(Clone, Copy)]
struct Functions {
    data_ptr: Tell<*mut c_void>,
    dim: Tell<i64>,
    sizes: Tell<*mut i64>,
    strides: Tell<*mut i64>,
    dtype: Tell<i32>,
    device_type: Tell<i32>,
    device_index: Tell<i32>,
}

/// How tensors of one type are looked at.
pub(super) struct Direct {
    /// In the Python object, the word that is the tensor.
    in_object: usize,
    functions: Functions,
    /// PyTorch's number for devices of CUDA.
    cuda: i32,
    /// The element types by PyTorch's numbers.
    dtypes: [Option<DType>; DTYPES],
}

/// More than PyTorch has.
const DTYPES: usize = 64;

/// What the exchange API tells of an object.
type Official<'a> = &'a dyn Fn(Borrowed<'_, '_, PyAny>) -> Option<DLTensor>;

impl Direct {
    /// How tensors of this type are looked at, if PyTorch's own types are, and all is as expected.
    /// `in_object` is the word that holds the address of the C++ object.
    pub(super) fn find(
        ty: &Bound<'_, PyType>,
        in_object: usize,
        official: Official<'_>,
    ) -> PyResult<Option<Direct>> {
        let py = ty.py();
        let torch = py.import("torch")?;
        // A class of somebody's own may be no tensor behind its face.
        let is_own = ty.is(&torch.getattr("Tensor")?)
            || ty.is(&torch.getattr("nn")?.getattr("Parameter")?);
        if !is_own || !is_locked(py)? {
            return Ok(None);
        }
        let Some((functions, cpu, cuda)) = exported() else {
            return Ok(None);
        };
        let globals = PyDict::new(py);
        globals.set_item("torch", torch)?;
        py.run(SAMPLES, Some(&globals), None)?;
        let samples = globals.as_any().get_item("samples")?;
        let mut direct = Direct {
            in_object,
            functions,
            cuda,
            dtypes: [None; DTYPES],
        };
        let plain = py.import("torch")?.getattr("Tensor")?;
        for sample in samples.try_iter()? {
            let sample = sample?;
            let address: usize = sample.getattr("_cdata")?.extract()?;
            if !sample.get_type().is(&plain)
                // SAFETY: tensors of the type have the word, as all that were looked at.
                || unsafe { word_at(sample.as_ptr().cast(), in_object) } != address
            {
                return Ok(None);
            }
            let told = official(sample.as_borrowed());
            let Some(official) = told.filter(|told| from_dlpack(told.dtype).is_ok()) else {
                // Of such elements the exchange API tells nothing, here or later.
                drop(PyErr::take(py));
                continue;
            };
            // SAFETY: the word is the address of the tensor, which is all that a tensor is in C++.
            if !unsafe { direct.agrees(sample.as_borrowed(), cpu, &official) } {
                return Ok(None);
            }
        }
        let any = direct.dtypes.iter().any(Option::is_some);
        Ok(any.then_some(direct))
    }

    /// Whether the functions tell of a tensor of the host what the exchange API does. Learns its
    /// element type.
    ///
    /// # Safety
    ///
    /// The object must be a tensor, and the word in it, too.
    unsafe fn agrees(
        &mut self,
        object: Borrowed<'_, '_, PyAny>,
        cpu: i32,
        official: &DLTensor,
    ) -> bool {
        let handle = self.handle(object);
        let Functions {
            dtype, device_type, ..
        } = self.functions;
        // SAFETY: passed on to the caller.
        let dtype = unsafe { tell(dtype, handle) };
        let place = dtype.and_then(|dtype| self.dtypes.get_mut(usize::try_from(dtype).ok()?));
        let (Some(place), Ok(dtype)) = (place, from_dlpack(official.dtype)) else {
            return false;
        };
        if *place.get_or_insert(dtype) != dtype {
            return false;
        }
        // SAFETY: passed on to the caller.
        if unsafe { tell(device_type, handle) } != Some(cpu)
            || official.device.device_type != DLDeviceType::CPU
        {
            return false;
        }
        let device = official.device;
        // SAFETY: passed on to the caller.
        let Some(found) = (unsafe { self.describe(handle, device, official.dtype) }) else {
            return false;
        };
        let dims = |tensor: &DLTensor| {
            let rank = usize::try_from(tensor.ndim).unwrap_or(0);
            // SAFETY: shape and strides have so many numbers while the object is held.
            [tensor.shape, tensor.strides]
                .map(|dims| unsafe { numbers_at(dims, rank) }.map(<[_]>::to_vec))
        };
        found.data.addr() as u64 == official.data.addr() as u64 + official.byte_offset
            && found.ndim == official.ndim
            && dims(&found) == dims(official)
    }

    /// The elements of a tensor of a GPU, and its number, if they follow one another in row-major
    /// order and nothing else is to be said.
    ///
    /// # Safety
    ///
    /// The object must be of the type that these were found for.
    #[inline(always)]
    pub(super) unsafe fn contiguous(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Option<(Elements, i32)> {
        let handle = self.handle(object);
        // SAFETY: a tensor's object has the word, as all that were looked at.
        if unsafe { word_at(handle.cast(), 0) } == 0 {
            return None;
        }
        let functions = &self.functions;
        // SAFETY: the word is a tensor, which the object keeps, here and below.
        if unsafe { tell(functions.device_type, handle) }? != self.cuda {
            return None;
        }
        let device = if one_device() {
            0
        } else {
            // SAFETY: as above.
            unsafe { tell(functions.device_index, handle) }?
        };
        // SAFETY: as above.
        let dtype = usize::try_from(unsafe { tell(functions.dtype, handle) }?).ok()?;
        let dtype = (*self.dtypes.get(dtype)?)?;
        // SAFETY: as above.
        let rank = usize::try_from(unsafe { tell(functions.dim, handle) }?).ok()?;
        // SAFETY: as above.
        let shape = unsafe { tell(functions.sizes, handle) }?;
        // SAFETY: as above.
        let strides = unsafe { tell(functions.strides, handle) }?;
        // SAFETY: there are as many as dimensions.
        let shape = unsafe { numbers_at(shape, rank) }?;
        // SAFETY: as above.
        let strides = unsafe { numbers_at(strides, rank) }?;
        let len = row_major(shape, strides)?;
        // SAFETY: as above. Asked last: what has no shape has no memory either.
        let pointer = unsafe { tell(functions.data_ptr, handle) }?;
        let place = Place::Device(device);
        let elements = Elements::new(pointer.addr() as u64, len, dtype, place)?;
        Some((elements, device))
    }

    /// # Safety
    ///
    /// There must be a tensor at the address, which must be kept while the answer is used.
    #[inline(always)]
    unsafe fn describe(
        &self,
        handle: *mut c_void,
        device: DLDevice,
        dtype: DLDataType,
    ) -> Option<DLTensor> {
        let functions = &self.functions;
        Some(DLTensor {
            // SAFETY: passed on to the caller, here and below.
            shape: unsafe { tell(functions.sizes, handle) }?,
            // SAFETY: as above.
            strides: unsafe { tell(functions.strides, handle) }?,
            // SAFETY: as above.
            ndim: i32::try_from(unsafe { tell(functions.dim, handle) }?).ok()?,
            // SAFETY: as above. Asked last: what has no shape has no memory either.
            data: unsafe { tell(functions.data_ptr, handle) }?,
            device,
            dtype,
            byte_offset: 0,
        })
    }

    #[inline(always)]
    fn handle(&self, object: Borrowed<'_, '_, PyAny>) -> *mut c_void {
        let words = object.as_ptr().cast::<usize>();
        words.wrapping_add(self.in_object).cast()
    }
}

/// # Safety
///
/// There must be a tensor at the address.
#[inline(always)]
unsafe fn tell<T>(function: Tell<T>, handle: *mut c_void) -> Option<T> {
    let mut answer = MaybeUninit::uninit();
    // SAFETY: passed on to the caller; `answer` takes the answer.
    let code = unsafe { function(handle, answer.as_mut_ptr()) };
    // SAFETY: the function succeeded.
    (code == 0).then(|| unsafe { answer.assume_init() })
}

/// The functions, and PyTorch's numbers for the host and for devices of CUDA.
#[cfg(target_os = "linux")]
fn exported() -> Option<(Functions, i32, i32)> {
    use libloading::os::unix::{Library, RTLD_NOW};
    /// Only a library that is there already.
    const RTLD_NOLOAD: std::ffi::c_int = 4;
    // SAFETY: nothing is loaded, so that nothing of the library runs.
    let library = unsafe { Library::open(Some("libtorch_cpu.so"), RTLD_NOW | RTLD_NOLOAD) }.ok()?;
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: the type of what it is assigned to is the function's type in PyTorch's header.
            *unsafe { library.get($name) }.ok()?
        }};
    }
    let number = |function: unsafe extern "C" fn() -> i32| {
        // SAFETY: a function that gives a constant.
        unsafe { function() }
    };
    let functions = Functions {
        data_ptr: function!(b"aoti_torch_get_data_ptr"),
        dim: function!(b"aoti_torch_get_dim"),
        sizes: function!(b"aoti_torch_get_sizes"),
        strides: function!(b"aoti_torch_get_strides"),
        dtype: function!(b"aoti_torch_get_dtype"),
        device_type: function!(b"aoti_torch_get_device_type"),
        device_index: function!(b"aoti_torch_get_device_index"),
    };
    let cpu = number(function!(b"aoti_torch_device_type_cpu"));
    let cuda = number(function!(b"aoti_torch_device_type_cuda"));
    // Modules of C are never unloaded, nor what they need.
    std::mem::forget(library);
    Some((functions, cpu, cuda))
}

/// Elsewhere nobody looked.
#[cfg(not(target_os = "linux"))]
fn exported() -> Option<(Functions, i32, i32)> {
    None
}

/// Tensors of the host, of every element type, and that lie in every manner.
const SAMPLES: &CStr = c"
host = dict(device='cpu')
samples = [
    torch.empty((), **host),
    torch.empty(4, **host),
    torch.empty(3, 5, **host).t(),
    torch.empty(4, 6, 8, **host)[1:, 2, ::2],
    torch.empty(3, 1, **host).expand(3, 4),
    torch.empty(2, 3, 2, 3, 2, 3, 2, **host),
    torch.empty(0, 3, **host),
]
for name in '''bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64
        complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu'''.split():
    if hasattr(torch, name):
        samples.append(torch.empty(4, dtype=getattr(torch, name), **host)[1:])
";

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pyo3::{Python, types::PyList};

    use super::*;

    /// What the functions tell.
    #[derive(Clone, Copy)]
    struct Told {
        data: usize,
        shape: &'static [i64],
        strides: &'static [i64],
        dtype: i32,
        device: (i32, i32),
        /// The function that fails.
        fails: &'static str,
    }

    const PLAIN: Told = Told {
        data: 0x7000,
        shape: &[2, 3],
        strides: &[3, 1],
        dtype: 6,
        device: (1, 0),
        fails: "",
    };

    thread_local! {
        static TOLD: Cell<Told> = const { Cell::new(PLAIN) };
    }

    macro_rules! function {
        ($name:ident, $ty:ty, $answer:expr) => {
            unsafe extern "C" fn $name(handle: *mut c_void, out: *mut $ty) -> i32 {
                assert!(!handle.is_null());
                let told = TOLD.get();
                if told.fails == stringify!($name) {
                    return 1;
                }
                let answer: fn(Told) -> $ty = $answer;
                // SAFETY: the caller provides the place.
                unsafe { *out = answer(told) };
                0
            }
        };
    }

    function!(data_ptr, *mut c_void, |told| {
        std::ptr::without_provenance_mut(told.data)
    });
    function!(dim, i64, |told| told.shape.len().try_into().unwrap());
    function!(sizes, *mut i64, |told| told.shape.as_ptr().cast_mut());
    function!(strides, *mut i64, |told| told.strides.as_ptr().cast_mut());
    function!(dtype, i32, |told| told.dtype);
    function!(device_type, i32, |told| told.device.0);
    function!(device_index, i32, |told| told.device.1);

    const DIRECT: Direct = Direct {
        in_object: 0,
        functions: Functions {
            data_ptr,
            dim,
            sizes,
            strides,
            dtype,
            device_type,
            device_index,
        },
        cuda: 1,
        dtypes: [None; DTYPES],
    };

    fn read(told: Told) -> Option<(u64, usize, DType)> {
        let mut direct = DIRECT;
        direct.dtypes[6] = Some(DType::F32);
        Python::initialize();
        Python::attach(|py| {
            TOLD.set(told);
            let object = PyList::empty(py);
            // SAFETY: the functions look at no tensor; the first word of an object is not 0.
            let elements = unsafe { direct.contiguous(object.as_any().as_borrowed()) };
            elements.map(|(elements, device)| {
                assert_eq!(device, told.device.1);
                assert_eq!(elements.device.place(), Place::Device(device));
                (elements.pointer, elements.len, elements.dtype)
            })
        })
    }

    #[test]
    fn plain_tensors_are_read() {
        let found = |shape, strides| {
            let told = Told {
                shape,
                strides,
                ..PLAIN
            };
            read(told).map(|(pointer, len, dtype)| {
                assert_eq!((pointer, dtype), (0x7000, DType::F32));
                len
            })
        };
        assert_eq!(found(&[2, 3], &[3, 1]), Some(6));
        assert_eq!(found(&[], &[]), Some(1));
        assert_eq!(found(&[1, 4], &[77, 1]), Some(4));
        assert_eq!(found(&[2, 3], &[1, 2]), None);
        assert_eq!(found(&[2, 3], &[0, 1]), None);
        assert_eq!(found(&[0, 3], &[3, 1]), None);
        assert_eq!(found(&[-1], &[1]), None);
        assert_eq!(found(&[i64::MAX, 2], &[2, 1]), None);
    }

    #[test]
    fn whatever_else_there_is_to_say_is_left_to_the_exchange_api() {
        for told in [
            Told { data: 0, ..PLAIN },
            // Of the host, and of an element type that no tensor was made of.
            Told {
                device: (0, 0),
                ..PLAIN
            },
            Told { dtype: 7, ..PLAIN },
            Told { dtype: -1, ..PLAIN },
            Told { dtype: 64, ..PLAIN },
        ] {
            assert_eq!(read(told), None);
        }
        for fails in [
            "data_ptr",
            "dim",
            "sizes",
            "strides",
            "dtype",
            "device_type",
        ] {
            assert_eq!(read(Told { fails, ..PLAIN }), None, "{fails}");
        }
        assert!(read(PLAIN).is_some());
    }

    #[test]
    fn what_differs_from_the_exchange_api_is_not_believed() {
        const CPU: i32 = 0;
        let on_host = Told {
            device: (CPU, -1),
            ..PLAIN
        };
        let official = DLTensor {
            data: std::ptr::without_provenance_mut(0x6ff0),
            device: DLDevice {
                device_type: DLDeviceType::CPU,
                device_id: 0,
            },
            ndim: 2,
            dtype: DLDataType::F32,
            shape: PLAIN.shape.as_ptr().cast_mut(),
            strides: PLAIN.strides.as_ptr().cast_mut(),
            byte_offset: 0x10,
        };
        let agrees = |direct: &mut Direct, told: Told| {
            Python::attach(|py| {
                TOLD.set(told);
                let object = PyList::empty(py);
                // SAFETY: the functions look at no tensor.
                unsafe { direct.agrees(object.as_any().as_borrowed(), CPU, &official) }
            })
        };
        Python::initialize();
        let mut direct = DIRECT;
        assert!(agrees(&mut direct, on_host));
        assert_eq!(direct.dtypes[6], Some(DType::F32));
        for told in [
            PLAIN,
            Told {
                data: 0x6ff0,
                ..on_host
            },
            Told {
                shape: &[3, 2],
                ..on_host
            },
            Told {
                strides: &[1, 2],
                ..on_host
            },
            Told {
                shape: &[6],
                strides: &[1],
                ..on_host
            },
            Told {
                dtype: 64,
                ..on_host
            },
            Told {
                fails: "sizes",
                ..on_host
            },
        ] {
            assert!(!agrees(&mut direct, told));
        }
        // One number for two types.
        direct.dtypes[6] = Some(DType::I32);
        assert!(!agrees(&mut direct, on_host));
    }
}
