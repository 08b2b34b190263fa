use gridcall::kernel;

#[kernel(ptx = "kernels")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
