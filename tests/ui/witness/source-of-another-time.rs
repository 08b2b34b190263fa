use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "__global__ void scale(float* y, float a)")]
unsafe fn scale(y: &mut [f32], a: f32, n: i32);

fn main() {}
