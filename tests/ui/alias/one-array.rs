use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[may_alias(y, y)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
    #[may_alias]
    safe fn axpy(n: i32, a: f32, x: &[f32], y: &mut [f32]);
}

fn main() {}
