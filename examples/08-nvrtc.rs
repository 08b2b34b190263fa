//! Kernels from CUDA source that is compiled while the program runs: a template for two types, and
//! for a struct of this program.
//!
//! Needs NVRTC, which is part of the CUDA toolkit; where there is none, the example says what it
//! looked for and how to get it, and ends with exit code 1. A GPU it does not need.

use std::{error::Error, fmt::Debug, process::ExitCode};

use gridcall::{
    KernelArg, cover,
    cudarc::driver::DeviceRepr,
    kernel,
    nvrtc::{Cached, Program},
};

const SOURCE: &str = "
    struct Complex { float re, im; };

    __device__ Complex operator*(Complex a, Complex b) {
        return { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
    }

    template <class T> __global__ void power(T* y, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        T x = y[i];
        for (int k = 1; k < EXPONENT; ++k) y[i] = y[i] * x;
    }
";

/// `struct Complex` of the source: the name is the same, and the compiler compares the fields.
#[derive(Clone, Copy, Debug, PartialEq, KernelArg)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

// SAFETY: two floats, which lie as they do on the device.
unsafe impl DeviceRepr for Complex {}

#[kernel]
unsafe extern "C" {
    /// y ← y³, element by element
    #[requires(y.len() >= n)]
    #[instances(T = { f64, i32, Complex })]
    safe fn power<T>(y: &mut [T], n: u32);
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.default_stream();

    let compiled = Program::new(SOURCE)
        .name("power.cu")
        .define("EXPONENT", 3)
        .instance::<power, f64>()
        .instance::<power, i32>()
        .instance::<power, Complex>()
        .compile(&ctx)?;
    match compiled.cached() {
        Cached::Found => println!("compiled for {} by an earlier run", compiled.arch()),
        Cached::Not(why) => println!("compiled for {}, and not kept: {why}", compiled.arch()),
        _ => println!("compiled for {}", compiled.arch()),
    }
    let module = compiled.load(&ctx)?;

    // SAFETY: the source stays within `n` elements, and is right for every launch.
    let of_doubles = unsafe { power::load_from::<f64>(&module) }?;
    // SAFETY: as above.
    let of_integers = unsafe { power::load_from::<i32>(&module) }?;
    // SAFETY: as above.
    let of_complex = unsafe { power::load_from::<Complex>(&module) }?;

    let mut y = stream.clone_htod(&[0.5, 1.5, -2.0])?;
    of_doubles.launch(&stream, cover(3), power { y: &mut y, n: 3 }.arguments())?;
    show(&stream.clone_dtoh(&y)?, &[0.125, 3.375, -8.0])?;

    let mut y = stream.clone_htod(&[1, 2, 3])?;
    of_integers.launch(&stream, cover(3), power { y: &mut y, n: 3 }.arguments())?;
    show(&stream.clone_dtoh(&y)?, &[1, 8, 27])?;

    let mut y = stream.clone_htod(&[Complex { re: 0.0, im: 1.0 }])?;
    of_complex.launch(&stream, cover(1), power { y: &mut y, n: 1 }.arguments())?;
    show(&stream.clone_dtoh(&y)?, &[Complex { re: 0.0, im: -1.0 }])
}

fn show<T: Debug + PartialEq>(y: &[T], expected: &[T]) -> Result<(), Box<dyn Error>> {
    println!("cubed: {y:?}");
    if y == expected {
        Ok(())
    } else {
        Err(format!("the kernel computed something else than {expected:?}").into())
    }
}
