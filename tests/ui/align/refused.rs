use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn scale(#[align(2)] y: &mut [f32], #[align(8)] a: f32, n: i32);
    safe fn relu(#[align(12)] y: &mut [f32], n: i32);
    safe fn zero(#[align] y: &mut [f32]);
}

fn main() {}
