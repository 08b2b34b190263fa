use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn scale(y: &mut [f32], a: f64, n: i32);
}

fn main() {}
