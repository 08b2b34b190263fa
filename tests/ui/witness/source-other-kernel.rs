use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "__global__ void sacle(float* y, float a, int n)")]
unsafe fn scale(y: &mut [f32], a: f32, n: i32);

fn main() {}
