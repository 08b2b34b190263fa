//! Launches from Rust, to compare those from Python with.

use std::{ffi::c_void, ptr, time::Instant};

use gridcall::{
    Tensor, TypedTensor,
    cudarc::driver::{CudaStream, DevicePtr, sys},
    python::{PyArray, stream_of},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
};

use crate::kernels::empty4;

/// Nanoseconds of host time a launch of the kernel that does nothing, of so many launches, by
/// `contender`: the bare `cuLaunchKernel`, or ours with a cudarc array, a tensor, a typed tensor or
/// the given arrays. All on the stream of `y`'s library.
#[pyfunction]
pub(crate) fn measure(
    contender: &str,
    x: PyArray<'_>,
    mut y: PyArray<'_>,
    launches: u32,
) -> PyResult<f64> {
    let stream = stream_of(&y)?;
    // SAFETY: the stream lives while its library works on it, which is now.
    let own = unsafe { stream.context().wrap_borrowed_stream(stream.cu_stream()) };
    let slice = || own.alloc_zeros::<f32>(32).map_err(failed);
    own.synchronize().map_err(failed)?;
    match contender {
        "bare" => {
            let (x, y) = (slice()?, slice()?);
            let (x, y) = (x.device_ptr(&own).0, y.device_ptr(&own).0);
            bare(&stream, x, y, launches)
        }
        "cudarc" => {
            let (x, mut y) = (slice()?, slice()?);
            timed(launches, || Ok(empty4(&own, (1, 32), &x, &mut y, 1.0, 32)?))
        }
        "tensor" => {
            let x = Tensor::from_slice(slice()?, &[32]).map_err(PyErr::from)?;
            let mut y = Tensor::from_slice(slice()?, &[32]).map_err(PyErr::from)?;
            timed(launches, || {
                Ok(empty4(&stream, (1, 32), &x, &mut y, 1.0, 32)?)
            })
        }
        "typed" => {
            let x = Tensor::from_slice(slice()?, &[32]).and_then(Tensor::typed);
            let y = Tensor::from_slice(slice()?, &[32]).and_then(Tensor::typed);
            let x: TypedTensor<f32, 1> = x.map_err(PyErr::from)?;
            let mut y: TypedTensor<f32, 1> = y.map_err(PyErr::from)?;
            timed(launches, || {
                Ok(empty4(&stream, (1, 32), &x, &mut y, 1.0, 32)?)
            })
        }
        "arrays" => timed(launches, || {
            Ok(empty4(&stream, (1, 32), &x, &mut y, 1.0, 32)?)
        }),
        _ => Err(PyValueError::new_err("no such contender")),
    }
}

fn timed(launches: u32, mut launch: impl FnMut() -> PyResult<()>) -> PyResult<f64> {
    for _ in 0..5 {
        launch()?;
    }
    let start = Instant::now();
    for _ in 0..launches {
        launch()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(launches))
}

/// Everything prepared beforehand, as a C programmer can.
fn bare(stream: &CudaStream, x: u64, y: u64, launches: u32) -> PyResult<f64> {
    const PTX: &str = include_str!("../../kernels/scalars.ptx");
    let module = stream.context().load_module(PTX.into()).map_err(failed)?;
    let function = module.load_function("empty4").map_err(failed)?;
    let (mut x, mut y, mut a, mut n) = (x, y, 1.0_f32, 32_i32);
    let mut params: [*mut c_void; 4] = [
        (&raw mut x).cast(),
        (&raw mut y).cast(),
        (&raw mut a).cast(),
        (&raw mut n).cast(),
    ];
    timed(launches, || {
        // SAFETY: the kernel takes these four parameters and touches no memory.
        let code = unsafe {
            sys::cuLaunchKernel(
                function.cu_function(),
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                stream.cu_stream(),
                params.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        code.result().map_err(failed)
    })
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
