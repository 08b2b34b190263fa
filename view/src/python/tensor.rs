//! A device array of ours as a Python object that any library takes.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use dlpark::ffi::DLTensor;
use pyo3::{
    Bound, Py, PyResult, Python,
    exceptions::{PyAttributeError, PyBufferError},
    pyclass, pymethods,
    types::{PyCapsule, PyDict, PyDictMethods, PyTuple},
};

use super::{export::capsule, table};
use crate::{
    AsDeviceView, DType, ForeignStream, Order, Place, StreamRef, Tensor, ViewError,
    dlpack::numbers,
    foreign::{Context, in_context, primary, synchronize},
};

/// A device array that a function gives to Python: what it returns to its caller.
///
/// CuPy, PyTorch and others take it as it is (`torch.from_dlpack(x)`, `cupy.from_dlpack(x)`), without
/// a copy, and so do functions with a [`PyArray`](super::PyArray). It has `__dlpack__`,
/// `__dlpack_device__`, DLPack's C exchange API on its type, `__cuda_array_interface__`, `shape`
/// and `dtype`.
///
/// # Order
///
/// Its stream is the legacy default stream, which waits for what was enqueued for the tensor before.
/// `__dlpack__` makes the stream that the other library names wait for that one; what that library
/// enqueues on other streams it must order before it lets the array go. The memory goes back when
/// nobody has the array any more, and the device is done with what was enqueued for it here.
///
/// ```
/// use gridcall_view::{DType, Order, Place, Tensor, python::PyTensor};
/// use pyo3::prelude::*;
///
/// # fn doc() -> PyResult<()> {
/// # let (address, owner) = (0x7000, ());
/// // SAFETY: `owner` keeps 6 floats at `address` on device 0, and no one else uses them.
/// let tensor = unsafe {
///     Tensor::from_parts(
///         address, DType::F32, &[2, 3], None, Place::Device(0), Order::Settled, Box::new(owner),
///     )
/// }?;
/// Python::attach(|py| {
///     let object = Bound::new(py, PyTensor::new(tensor)?)?;
///     let torch = py.import("torch")?;
///     torch.call_method1("from_dlpack", (object,))?;
///     Ok(())
/// })
/// # }
/// ```
#[pyclass(frozen, name = "Tensor", module = "gridcall")]
pub struct PyTensor {
    shared: Arc<Shared>,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

/// A tensor that several have; all of their work is ordered with the legacy default stream.
struct Shared {
    tensor: Tensor,
    context: Context,
}

impl PyTensor {
    /// Gives a tensor to Python.
    ///
    /// # Errors
    ///
    /// If the driver refuses to let the legacy default stream wait for what was enqueued for it.
    pub fn new(tensor: Tensor) -> Result<PyTensor, ViewError> {
        let context = match tensor.place() {
            Place::Context { context, device } => Context {
                raw: context,
                device,
            },
            Place::Device(device) => primary(device)?,
            Place::Everywhere => primary(0)?,
        };
        let shape = numbers(tensor.shape())?.into();
        let strides = numbers(tensor.strides())?.into();
        let shared = Shared { tensor, context };
        shared.join()?;
        Ok(PyTensor {
            shared: Arc::new(shared),
            shape,
            strides,
        })
    }

    /// Another tensor of the same memory.
    pub(super) fn again(&self) -> Result<Tensor, ViewError> {
        let order = Order::Stream(ForeignStream::LEGACY_DEFAULT);
        // SAFETY: the owner keeps the tensor that is described alike, and all who have it were told
        // that its stream is this one.
        unsafe {
            self.shared
                .tensor
                .again(order, Box::new(self.shared.clone()))
        }
    }

    /// The tensor in DLPack's struct, for as long as this lives.
    pub(super) fn to_dl_tensor(&self) -> Result<DLTensor, ViewError> {
        let (shape, strides) = (self.shape.as_ptr(), self.strides.as_ptr());
        self.shared
            .tensor
            .to_dl_tensor(shape.cast_mut(), strides.cast_mut())
    }

    fn ordered<R>(
        &self,
        consumer: Option<StreamRef<'_>>,
        export: impl FnOnce() -> Result<R, ViewError>,
    ) -> Result<R, ViewError> {
        match consumer {
            None => export(),
            // The default streams are of whatever context is current.
            Some(_) => in_context(self.shared.context, export),
        }
    }
}

impl Shared {
    /// Lets the legacy default stream wait for the tensor's, and the other way round.
    fn join(&self) -> Result<(), ViewError> {
        in_context(self.context, || {
            let stream = stream_ref(ForeignStream::LEGACY_DEFAULT, self.context);
            // The type of the elements makes no difference to the order.
            AsDeviceView::<u8>::acquire(&self.tensor, stream)?.finish()
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What was enqueued for it is before what its owner does with the memory next.
        if self.join().is_err() {
            synchronize(self.context);
        }
    }
}

fn stream_ref<'a>(stream: ForeignStream, context: Context) -> StreamRef<'a> {
    // SAFETY: the default stream, or one that its library keeps while it asks for the tensor; the
    // reference is used at once.
    unsafe { StreamRef::from_raw(stream.raw(), context.raw, context.device) }
}

#[pymethods]
impl PyTensor {
    /// Exports the tensor by DLPack, ready for use on `stream`: None and 1 are the legacy default
    /// stream, 2 the calling thread's, -1 asks for no order.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let here = self.__dlpack_device__();
        if dl_device.is_some_and(|device| device != here) {
            return Err(PyBufferError::new_err(format!(
                "the array is on the device {here:?} of DLPack and is not copied to {dl_device:?}; take it as it is, and copy it there"
            )));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err(
                "the array is not copied as it is exported; take it as it is, and copy it there",
            ));
        }
        // SAFETY: the library that asks keeps its stream meanwhile.
        let order = unsafe { Order::from_dlpack_stream(stream) }?;
        let consumer = match order {
            Order::Stream(ForeignStream::LEGACY_DEFAULT) | Order::Settled => None,
            Order::Stream(stream) => Some(stream_ref(stream, self.shared.context)),
        };
        let tensor = self.again()?;
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if versioned {
            let tensor = self.ordered(consumer, || tensor.into_dlpack(consumer))?;
            capsule(py, tensor)
        } else if tensor.is_read_only() {
            Err(PyBufferError::new_err(
                "the array is read-only, which DLPack before 1.0 cannot say; ask for `max_version=(1, 0)` or later",
            ))
        } else {
            let tensor = self.ordered(consumer, || tensor.into_legacy_dlpack(consumer))?;
            capsule(py, tensor)
        }
    }

    /// The type and the number of the device, as DLPack counts them.
    fn __dlpack_device__(&self) -> (u32, i32) {
        let device = self.shared.tensor.dl_device();
        (device.device_type.0, device.device_id)
    }

    /// The table of DLPack's C functions for tensors of this type.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        table::capsule(py)
    }

    /// What the array is to libraries of CUDA in Python. `bfloat16` and the floats of 8 bits have none.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensor = &self.shared.tensor;
        let dtype = tensor.dtype();
        let Some(typestr) = typestr(dtype) else {
            return Err(PyAttributeError::new_err(format!(
                "the array interface has no type string for elements of {dtype}; take the array by DLPack"
            )));
        };
        let pointer = if tensor.is_empty() {
            0
        } else {
            tensor.pointer()
        };
        let strides = if tensor.is_contiguous() {
            None
        } else {
            let size = dtype.size().cast_signed();
            // Where one leads to an element, it is within all addresses.
            let strides = tensor
                .strides()
                .iter()
                .map(|stride| stride.saturating_mul(size));
            Some(PyTuple::new(py, strides.collect::<Vec<_>>())?)
        };
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, &*self.shape)?)?;
        interface.set_item("typestr", typestr)?;
        interface.set_item("data", (pointer, tensor.is_read_only()))?;
        interface.set_item("strides", strides)?;
        interface.set_item("stream", 1)?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// The number of elements along each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &*self.shape)
    }

    /// The name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        super::library::numpy_name(self.shared.tensor.dtype())
    }

    fn __repr__(&self) -> String {
        let (device, id) = self.__dlpack_device__();
        format!(
            "<gridcall.Tensor of {} {:?} on DLPack's device ({device}, {id})>",
            self.dtype(),
            self.shape
        )
    }
}

/// The type string of the array interface, which has none for bfloat16 and the 8-bit floats.
fn typestr(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::Complex64 => "<c8",
        DType::Complex128 => "<c16",
        _ => return None,
    })
}
