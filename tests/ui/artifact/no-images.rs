use gridcall::kernel;

#[kernel(ptx = [])]
unsafe fn swap(out: &mut [f32]);

fn main() {}
