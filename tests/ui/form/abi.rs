use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "system" {
    fn relu(y: &mut [f32], n: i32);
}

fn main() {}
