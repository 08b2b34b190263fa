use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32) -> i32;
}

fn main() {}
