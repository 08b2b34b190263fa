use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

fn call(stream: &CudaStream, x: &gridcall::cudarc::driver::CudaSlice<f64>, y: &mut gridcall::cudarc::driver::CudaSlice<i32>) {
    let _ = saxpy(stream, cover(10), 10, 2.0, x, y);
}

fn main() {}
