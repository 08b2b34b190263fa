use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
fn relu(y: &mut [f32], n: i32);

fn main() {}
