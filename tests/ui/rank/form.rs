use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[rank]
    safe fn zero(y: &mut [f32]);
    #[rank(0)]
    safe fn relu(y: &mut [f32], n: i32);
    #[rank(4)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);
    #[rank(1)]
    #[rank(2)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

fn main() {}
