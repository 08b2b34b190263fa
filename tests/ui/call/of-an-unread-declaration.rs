// What is wrong with one declaration leaves the others of its block as they are.
use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn rleu(y: &mut [f32], n: i32);
    safe fn zero(y: &mut [f32]);
}

fn call(stream: &CudaStream, y: &mut CudaSlice<f32>) -> Result<(), gridcall::LaunchError> {
    rleu(stream, cover(10), y, 10)?;
    let kernel = zero::load(stream.context()).unwrap();
    kernel.launch(stream, cover(10), zero { y })
}

fn main() {}
