use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

fn call(stream: &CudaStream, x: &gridcall::cudarc::driver::CudaSlice<f32>, y: &mut gridcall::cudarc::driver::CudaSlice<f32>) {
    let _ = saxpy { n: 10, x, y }.launch(stream, cover(10));
    let _ = saxpy { n: 10, n: 11, a: 2.0, x, y }.launch(stream, cover(10));
}

fn main() {}
