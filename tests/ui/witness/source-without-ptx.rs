use gridcall::kernel;

#[kernel(cuda = "kernels/vector.cu")]
unsafe fn relu(y: &mut [f32], n: i32);

fn main() {}
