use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[may_alias(x, z)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
    #[may_alias(n, y)]
    safe fn axpy(n: i32, a: f32, x: &[f32], y: &mut [f32]);
    #[may_alias(x, idx)]
    safe fn gather(x: &[f32], idx: &[i32], out: &mut [f32], n: i32);
    #[may_alias(out)]
    safe fn copy(input: &[f32], out: &mut [f32], n: i32);
}

fn main() {}
