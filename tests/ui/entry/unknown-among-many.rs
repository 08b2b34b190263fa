use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn softmax(x: &[f32], y: &mut [f32], n: i32);
}

fn main() {}
