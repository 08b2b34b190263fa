//! A small array of our own, for tests where neither CuPy nor PyTorch is: its memory comes from
//! whatever driver there is.

use gridcall::cudarc::driver::{CudaSlice, DevicePtr, DriverError};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};

/// Floats on device 0. What others see of it is its `__cuda_array_interface__`.
#[pyclass(frozen)]
pub(crate) struct DeviceArray {
    memory: CudaSlice<f32>,
}

#[pymethods]
impl DeviceArray {
    #[new]
    fn new(values: Vec<f32>) -> PyResult<DeviceArray> {
        let stream = gridcall::device(0)?.default_stream();
        let memory = stream.clone_htod(&values).map_err(failed)?;
        Ok(DeviceArray { memory })
    }

    /// The values now. Waits for the device.
    fn tolist(&self) -> PyResult<Vec<f32>> {
        let context = self.memory.stream().context();
        context.synchronize().map_err(failed)?;
        self.memory.stream().clone_dtoh(&self.memory).map_err(failed)
    }

    /// The device address of the first value.
    #[getter]
    fn address(&self) -> u64 {
        self.memory.device_ptr(self.memory.stream()).0
    }

    /// Its stream is the legacy default stream.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.memory.len(),))?;
        interface.set_item("typestr", "<f4")?;
        interface.set_item("data", (self.address(), false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", 1)?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

fn failed(error: DriverError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
