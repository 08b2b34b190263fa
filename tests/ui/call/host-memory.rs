use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

fn call(stream: &CudaStream) {
    let x = vec![1.0_f32; 10];
    let mut y = [0.0_f32; 10];
    let _ = saxpy(stream, cover(10), 10, 2.0, &x, &mut y);
}

fn main() {}
