use gridcall::cudarc::driver::CudaStream;
use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    unsafe fn relu(y: *mut f32, n: i32);
}

fn call(stream: &CudaStream) {
    let mut y = vec![1.0_f32; 10];
    let _ = unsafe { relu(stream, cover(10), y.as_mut_ptr(), 10) };
}

fn main() {}
