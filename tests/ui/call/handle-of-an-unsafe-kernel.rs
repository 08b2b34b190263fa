use gridcall::cudarc::driver::{CudaSlice, CudaStream};
use gridcall::{Kernel, cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    unsafe fn relu(y: &mut [f32], n: i32);
    unsafe fn zero(y: &mut [f32]);
}

fn call(stream: &CudaStream, y: &mut CudaSlice<f32>) {
    let kernel: Kernel<relu> = relu::load(stream.context()).unwrap();
    let kernel = relu::load(stream.context()).unwrap();
    let _ = kernel.launch(stream, cover(10), relu { y: &mut *y, n: 10 });
    let _ = unsafe { kernel.launch(stream, cover(10), zero { y }) };
}

fn main() {}
