use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &[f32], n: i32);
    safe fn sum_into(x: &[f32], out: &[f32], n: i32);
    unsafe fn fill(y: *const f32, v: f32, n: i32);
    safe fn zero(y: Option<&[f32]>);
}

fn main() {}
