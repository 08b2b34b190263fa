//! A number of elements is no launch: `cover` makes one of it.

use gridcall::{
    Buffer,
    cudarc::driver::CudaStream,
    kernel,
};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);
}

fn main() {}

fn run(stream: &CudaStream, mut y: Buffer<f32>, n: usize) {
    let _ = fill(stream, 1000, &mut y, 1.0, 1000);
    let _ = fill(stream, n, &mut y, 1.0, 1000);
    let _ = fill { y: &mut y, v: 1.0, n: 1000 }.launch(stream, (4, 4, 4));
    let _ = fill(stream, (n, 256), &mut y, 1.0, 1000);
}
