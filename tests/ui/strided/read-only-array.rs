use gridcall::{
    LaunchError, Shaped, cover,
    cudarc::driver::{CudaSlice, CudaStream},
    kernel,
};

#[kernel(ptx = "kernels/strided.ptx")]
unsafe extern "C" {
    safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

fn copied(stream: &CudaStream, x: &CudaSlice<f32>, y: &CudaSlice<f32>) -> Result<(), LaunchError> {
    let input = Shaped::new(x, [2, 3]);
    let mut out = Shaped::new(y, [2, 3]);
    copy_2d(stream, cover((3_u32, 2_u32)), &input, &mut out)
}

fn main() {
    let _ = copied;
}
