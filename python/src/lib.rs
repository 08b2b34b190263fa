//! Kernels for Python: each function takes arrays of CuPy, PyTorch or any library that speaks
//! DLPack or has `__cuda_array_interface__`, as they are, and launches on the stream on which the
//! library of the array that is written works now.

mod bench;
mod kernels;
mod memory;

use gridcall::{
    Buffer, cover,
    python::{PyArray, PyStream, PyTensor, launch_stream, stream_of},
};
use pyo3::prelude::*;

/// y ← a·x + y, in place.
#[pyfunction]
fn saxpy(a: f32, x: PyArray<'_>, mut y: PyArray<'_>) -> PyResult<()> {
    let stream = stream_of(&y)?;
    let n = u32::try_from(y.size())?;
    let (x, y) = (&x, &mut y);
    // As a graph of one kernel, since loops call this.
    stream.replay(cover(n), kernels::saxpy { n, a, x, y })?;
    Ok(())
}

/// y ← a·x + y on a stream of any library that has `__cuda_stream__`, of device 0.
#[pyfunction]
fn saxpy_on(stream: PyStream<'_>, a: f32, x: PyArray<'_>, mut y: PyArray<'_>) -> PyResult<()> {
    let stream = launch_stream(&stream, 0)?;
    let n = u32::try_from(y.size())?;
    let (x, y) = (&x, &mut y);
    stream.replay(cover(n), kernels::saxpy { n, a, x, y })?;
    Ok(())
}

/// A new tensor, a·x + y, which any library takes.
#[pyfunction]
fn axpy(a: f32, x: PyArray<'_>, y: PyArray<'_>) -> PyResult<PyTensor> {
    let stream = stream_of(&y)?;
    let (n, len) = (u32::try_from(y.size())?, i32::try_from(y.size())?);
    let own = stream.context().default_stream();
    let mut out = Buffer::<f32>::zeroed(&own, y.size())?;
    kernels::copy(&stream, cover(len), &y, &mut out, len)?;
    kernels::saxpy(&stream, cover(n), n, a, &x, &mut out)?;
    Ok(PyTensor::new(out.into_tensor(y.shape()?)?)?)
}

/// out ← x, both contiguous.
#[pyfunction]
fn copy(x: PyArray<'_>, mut out: PyArray<'_>) -> PyResult<()> {
    let stream = stream_of(&out)?;
    let n = i32::try_from(out.size())?;
    kernels::copy(&stream, cover(n), &x, &mut out, n)?;
    Ok(())
}

/// y ← a·y, in place.
#[pyfunction]
fn scale(mut y: PyArray<'_>, a: f32) -> PyResult<()> {
    let stream = stream_of(&y)?;
    let n = i32::try_from(y.size())?;
    stream.replay(cover(n), kernels::scale { y: &mut y, a, n })?;
    Ok(())
}

/// out[i] ← whether a[i] is b[i].
#[pyfunction]
fn equal(a: PyArray<'_>, b: PyArray<'_>, mut out: PyArray<'_>) -> PyResult<()> {
    let stream = stream_of(&out)?;
    let n = i32::try_from(out.size())?;
    kernels::all_eq(&stream, cover(n), &a, &b, n, false, &mut out)?;
    Ok(())
}

/// out ← a + b for matrices that lie as they like: transposed, sliced, flipped, broadcast.
#[pyfunction]
fn add(a: PyArray<'_>, b: PyArray<'_>, mut out: PyArray<'_>) -> PyResult<()> {
    let stream = stream_of(&out)?;
    let (rows, columns) = match *out.shape()? {
        [rows, columns] => (rows, columns),
        // The launch says what it takes.
        _ => (0, 0),
    };
    kernels::add_2d(&stream, cover((columns, rows)), &a, &b, &mut out)?;
    Ok(())
}

/// Launches a kernel of four parameters that does nothing, for benchmarks.
#[pyfunction]
fn nothing(x: PyArray<'_>, mut y: PyArray<'_>, a: f32, n: i32) -> PyResult<()> {
    let stream = stream_of(&y)?;
    kernels::empty4(&stream, (1, 32), &x, &mut y, a, n)?;
    Ok(())
}

/// The same as a graph of one kernel.
#[pyfunction]
fn nothing_replayed(x: PyArray<'_>, mut y: PyArray<'_>, a: f32, n: i32) -> PyResult<()> {
    let stream = stream_of(&y)?;
    let (x, y) = (&x, &mut y);
    stream.replay((1, 32), kernels::empty4 { x, y, a, n })?;
    Ok(())
}

/// Why there is no device, or None.
#[pyfunction]
fn why_no_device() -> Option<String> {
    gridcall::device(0).err().map(|error| error.to_string())
}

#[pymodule(gil_used = false)]
fn gridcall_example(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensor>()?;
    module.add_class::<memory::DeviceArray>()?;
    module.add_class::<memory::Stream>()?;
    module.add_function(wrap_pyfunction!(memory::tensor, module)?)?;
    module.add_function(wrap_pyfunction!(memory::tolist, module)?)?;
    module.add_function(wrap_pyfunction!(axpy, module)?)?;
    module.add_function(wrap_pyfunction!(saxpy, module)?)?;
    module.add_function(wrap_pyfunction!(saxpy_on, module)?)?;
    module.add_function(wrap_pyfunction!(copy, module)?)?;
    module.add_function(wrap_pyfunction!(equal, module)?)?;
    module.add_function(wrap_pyfunction!(scale, module)?)?;
    module.add_function(wrap_pyfunction!(add, module)?)?;
    module.add_function(wrap_pyfunction!(nothing, module)?)?;
    module.add_function(wrap_pyfunction!(nothing_replayed, module)?)?;
    module.add_function(wrap_pyfunction!(why_no_device, module)?)?;
    module.add_function(wrap_pyfunction!(bench::measure, module)?)?;
    Ok(())
}
