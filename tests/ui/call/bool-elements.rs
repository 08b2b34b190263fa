use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/scalars.ptx")]
unsafe extern "C" {
    safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: bool, out: &mut [bool]);
}

fn call(stream: &CudaStream, a: &gridcall::cudarc::driver::CudaSlice<f32>, out: &mut gridcall::cudarc::driver::CudaSlice<u8>) {
    let _ = all_eq(stream, cover(1), a, a, 1, false, out);
}

fn main() {}
