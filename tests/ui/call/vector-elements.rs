use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{Cast, Float4, cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn copy4(x: &[Float4], y: &mut [Float4], n4: i32);
}

fn floats(stream: &CudaStream, x: &CudaSlice<f32>, y: &mut CudaSlice<Float4>) {
    let _ = copy4(stream, cover(1), x, y, 1);
}

fn bools(stream: &CudaStream, x: &CudaSlice<Float4>, y: &mut CudaSlice<bool>) {
    let _ = copy4(stream, cover(1), x, &mut Cast::new(y), 1);
}

fn main() {}
