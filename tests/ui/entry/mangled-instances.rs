use gridcall::kernel;

#[kernel(ptx = "kernels/mangled.ptx")]
unsafe extern "C" {
    safe fn extreme(x: &[f32], out: &mut [f32], n: i32);
    safe fn add(x: &mut [f32], n: i32);
}

fn main() {}
