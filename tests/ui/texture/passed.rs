use gridcall::{
    Texture,
    cudarc::driver::{CudaSlice, CudaStream},
    kernel,
};

#[kernel(ptx = "kernels/texture.ptx")]
unsafe extern "C" {
    safe fn gather(x: Texture<f32>, index: &[i32], y: &mut [f32], n: Texture<f32>);
    #[name("gather")]
    safe fn right(x: Texture<f32>, index: &[i32], y: &mut [f32], n: u32);
}

fn array(stream: &CudaStream, x: &CudaSlice<f32>, i: &CudaSlice<i32>, y: &mut CudaSlice<f32>) {
    let _ = right(stream, (1, 256), x, i, y, 1);
}

fn wide(stream: &CudaStream, x: &CudaSlice<f64>) {
    let _ = Texture::linear(stream.context(), x);
}

fn main() {}
