use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[block(2048)]
    safe fn zero(y: &mut [f32]);
    #[block(1, 1, 128)]
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
