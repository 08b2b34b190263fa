use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(#[cfg(unix)] y: &mut [f32], #[range(0..10)] n: i32);
}

fn main() {}
