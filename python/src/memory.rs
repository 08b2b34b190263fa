//! Arrays and streams of our own, for tests where neither CuPy nor PyTorch is: they come from
//! whatever driver there is.

use std::sync::Arc;

use gridcall::{
    AsDeviceView, Buffer, cover,
    cudarc::driver::CudaStream,
    python::{PyArray, PyTensor, stream_of},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};

use crate::kernels;

/// A tensor of floats.
#[pyfunction]
#[pyo3(signature = (values, shape=None, device=0))]
pub(crate) fn tensor(
    values: Vec<f32>,
    shape: Option<Vec<usize>>,
    device: usize,
) -> PyResult<PyTensor> {
    let stream = gridcall::device(device)?.default_stream();
    let memory = Buffer::from_slice(&stream, &values)?;
    let shape = shape.unwrap_or_else(|| vec![values.len()]);
    Ok(PyTensor::new(memory.into_tensor(&shape)?)?)
}

/// The floats of any array. Waits for the device.
#[pyfunction]
pub(crate) fn tolist(array: PyArray<'_>) -> PyResult<Vec<f32>> {
    let stream = stream_of(&array)?;
    let n = i32::try_from(array.size())?;
    let own = stream.context().default_stream();
    let mut copy = Buffer::<f32>::zeroed(&own, array.size())?;
    kernels::copy(&stream, cover(n), &array, &mut copy, n)?;
    Ok(copy.to_vec()?)
}

/// Floats on device 0. What others see of it is its `__cuda_array_interface__`.
#[pyclass(frozen)]
pub(crate) struct DeviceArray {
    memory: Buffer<f32>,
}

#[pymethods]
impl DeviceArray {
    #[new]
    fn new(values: Vec<f32>) -> PyResult<DeviceArray> {
        let stream = gridcall::device(0)?.default_stream();
        let memory = Buffer::from_slice(&stream, &values)?;
        Ok(DeviceArray { memory })
    }

    /// The values now. Waits for the device.
    fn tolist(&self) -> PyResult<Vec<f32>> {
        let context = self.memory.stream().context();
        context.synchronize().map_err(failed)?;
        Ok(self.memory.to_vec()?)
    }

    /// The device address of the first value.
    #[getter]
    fn address(&self) -> PyResult<u64> {
        Ok(self.memory.describe()?.pointer())
    }

    /// Its stream is the legacy default stream.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.memory.len(),))?;
        interface.set_item("typestr", "<f4")?;
        interface.set_item("data", (self.address()?, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", 1)?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

/// A stream of device 0 that no other waits for.
#[pyclass(frozen)]
pub(crate) struct Stream {
    stream: Arc<CudaStream>,
}

#[pymethods]
impl Stream {
    #[new]
    fn new() -> PyResult<Stream> {
        let stream = gridcall::device(0)?.new_stream().map_err(failed)?;
        Ok(Stream { stream })
    }

    /// The `CUstream`.
    #[getter]
    fn handle(&self) -> usize {
        self.stream.cu_stream().addr()
    }

    fn __cuda_stream__(&self) -> (u8, usize) {
        (0, self.handle())
    }

    fn synchronize(&self) -> PyResult<()> {
        self.stream.synchronize().map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
