use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[block]
    safe fn zero(y: &mut [f32]);
    #[block(0)]
    safe fn relu(y: &mut [f32], n: i32);
    #[block(8, 8, 8, 8)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);
    #[block(SIZE)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

fn main() {}
