use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires]
    safe fn relu(y: &mut [f32], n: i32);
    #[requires()]
    safe fn zero(y: &mut [f32]);
}

fn main() {}
