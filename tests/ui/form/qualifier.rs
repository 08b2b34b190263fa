use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    const fn relu(y: &mut [f32], n: i32);
    async fn zero(y: &mut [f32]);
    extern "C" fn fill(y: &mut [f32], v: f32, n: i32);
}

fn main() {}
