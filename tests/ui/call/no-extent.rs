use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{cover, kernel, stride};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn relu(y: &mut [f32], n: i32);
}

fn call(stream: &CudaStream, y: &mut CudaSlice<f32>) {
    let _ = relu(stream, cover(1e6), y, 10);
    let _ = relu(stream, cover((10, 10, 10, 10)), y, 10);
    let _ = relu(stream, stride(10_u16), y, 10);
}

fn main() {}
