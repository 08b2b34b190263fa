use gridcall::kernel;

#[kernel(ptx = "kernels/unused.ptx", unused = "deny")]
unsafe fn first(x: &[f32], mask: &[u8], out: &mut [f32]);

fn main() {}
