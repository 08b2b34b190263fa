use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(mut y: &mut [f32], _: i32);
    safe fn scale((y, a): (f32, f32), n: i32);
}

fn main() {}
