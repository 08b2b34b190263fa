use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn scale(y: &mut [f32], a: &f32, n: &mut i32);
}

fn main() {}
