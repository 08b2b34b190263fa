use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    safe fn saxpy(n: i32, a: f32, x: &[f32], y: &mut [f32]);
    safe fn pad(out: u64, n: usize);
    safe fn fill(y: &mut [f32], v: f32, n: u32);
}

fn main() {}
