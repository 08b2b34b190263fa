use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu", cuda = "kernels/vector.cu")]
unsafe fn scale(y: &mut [f32], a: f32, n: i32);

fn main() {}
