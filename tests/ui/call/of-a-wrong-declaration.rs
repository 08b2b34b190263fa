// One error for one mistake: the calls resolve.
use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: String);
    safe fn zero(y: &mut [f32]);
}

fn call(stream: &CudaStream, y: &mut CudaSlice<f32>) -> Result<(), gridcall::LaunchError> {
    relu(stream, cover(10), y, "10".to_owned())?;
    relu { y: &mut *y, n: 10 }.launch(stream, cover(10))?;
    zero(stream, cover(10), y)
}

fn main() {}
