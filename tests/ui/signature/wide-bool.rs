use gridcall::kernel;

#[kernel(ptx = "kernels/scalars.ptx")]
unsafe extern "C" {
    safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: i32, out: &mut [bool]);
}

fn main() {}
