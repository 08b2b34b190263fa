use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n as usize)]
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
