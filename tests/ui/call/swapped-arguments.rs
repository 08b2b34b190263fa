use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn transpose(input: &[f32], out: &mut [f32], rows: i32, cols: i32, total: i32);
}

fn call(stream: &CudaStream, x: &gridcall::cudarc::driver::CudaSlice<f32>, y: &mut gridcall::cudarc::driver::CudaSlice<f32>) {
    let _ = transpose(stream, cover(15), x, 3, y, 5, 15);
}

fn main() {}
