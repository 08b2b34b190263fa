use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", name = "relu")]
unsafe fn rectify(y: &mut [f32], n: i32);

fn main() {}
