use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(n < 340282366920938463463374607431768211456)]
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
