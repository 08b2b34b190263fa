use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe fn relu(y: &mut [f32], n: i32) {
    y[0] = n as f32;
}

fn main() {}
