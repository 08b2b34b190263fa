use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "__global__ void scale(float* y, float a, int n)")]
unsafe fn scale(y: &mut [f64], a: f32, n: i32);

fn main() {}
