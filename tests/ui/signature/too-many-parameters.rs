use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], slope: f64, n: i32);
}

fn main() {}
