use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
struct Relu;

fn main() {}
