use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn call(stream: &CudaStream, y: &mut CudaSlice<f64>) {
    let _ = relu { y, n: 10 }.launch(stream, cover(10));
}

fn main() {}
