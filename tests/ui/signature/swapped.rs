use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(n: i32, y: &mut [f32]);
}

fn main() {}
