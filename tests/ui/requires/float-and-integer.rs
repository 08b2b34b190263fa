use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= a)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

fn main() {}
