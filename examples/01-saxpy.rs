//! The smallest whole program: declare a kernel, copy arrays to the device, call it, look at the
//! result; then time the call beside the driver's own.
//!
//! Needs a GPU of any kind; where there is none, it runs on the emulator, which all examples do.

use std::{error::Error, ffi::c_void, process::ExitCode, time::Instant};

use gridcall::{
    cover,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, sys},
    kernel,
};

// Each declaration is compared with the compiled kernel while this file compiles: change a type,
// leave a parameter out or misspell the name, and it no longer does.
#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    println!("device: {}", ctx.name()?);
    let stream = ctx.default_stream();

    let n = 1_000_000_u32;
    let a = 2.0;
    let host_x: Vec<f32> = (0..1000_u16)
        .map(f32::from)
        .cycle()
        .take(n as usize)
        .collect();
    let host_y: Vec<f32> = (0..7_u16).map(f32::from).cycle().take(n as usize).collect();
    let x = stream.clone_htod(&host_x)?;
    let mut y = stream.clone_htod(&host_y)?;

    saxpy(&stream, cover(n), n, a, &x, &mut y)?;

    let result = stream.clone_dtoh(&y)?;
    for (i, &got) in result.iter().enumerate() {
        // The kernel's a·x + y rounds once.
        let expected = a.mul_add(host_x[i], host_y[i]);
        if got.to_bits() != expected.to_bits() {
            return Err(format!("y[{i}] is {got}, the CPU computes {expected}").into());
        }
    }
    println!("result: {n} elements, all as the CPU computes them");

    // A count that the arrays do not hold is refused before anything runs.
    let error = saxpy(&stream, cover(n), n + 1, a, &x, &mut y).unwrap_err();
    println!("refused: {error}");

    time(&stream, &x, &mut y)
}

/// Host time of a launch: ours, and the driver's function called by hand.
fn time(
    stream: &CudaStream,
    x: &CudaSlice<f32>,
    y: &mut CudaSlice<f32>,
) -> Result<(), Box<dyn Error>> {
    const LAUNCHES: u32 = 500;
    let saxpy_kernel = saxpy::load(stream.context())?;
    let nanoseconds = |launch: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
        let mut best = f64::INFINITY;
        for _ in 0..10 {
            stream.synchronize()?;
            let start = Instant::now();
            for _ in 0..LAUNCHES {
                launch()?;
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(LAUNCHES));
        }
        stream.synchronize()?;
        Ok::<f64, Box<dyn Error>>(best)
    };

    let function = saxpy_kernel.cu_function();
    let (mut n, mut a) = (1_u32, 2_f32);
    let mut x_address = x.device_ptr(stream).0;
    let mut y_address = y.device_ptr_mut(stream).0;
    let mut params: [*mut c_void; 4] = [
        (&raw mut n).cast(),
        (&raw mut a).cast(),
        (&raw mut x_address).cast(),
        (&raw mut y_address).cast(),
    ];
    let bare = nanoseconds(&mut || {
        // SAFETY: the four parameters are those of saxpy, and outlive the call; one element of
        // each array is touched.
        let code = unsafe {
            sys::cuLaunchKernel(
                function,
                1,
                1,
                1,
                256,
                1,
                1,
                0,
                stream.cu_stream(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        Ok(code.result()?)
    })?;
    let function = nanoseconds(&mut || Ok(saxpy(stream, cover(1_u32), 1, 2.0, x, y)?))?;
    let handle = nanoseconds(&mut || {
        Ok(saxpy_kernel.launch(
            stream,
            cover(1_u32),
            saxpy {
                n: 1,
                a: 2.0,
                x,
                y: &mut *y,
            },
        )?)
    })?;
    println!(
        "host time a launch: bare cuLaunchKernel {bare:.0} ns, saxpy(..) {function:.0} ns, through a handle {handle:.0} ns"
    );
    Ok(())
}
