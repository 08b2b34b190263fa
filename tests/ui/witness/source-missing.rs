use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vectro.cu")]
unsafe fn scale(y: &mut [f32], a: f32, n: i32);

fn main() {}
