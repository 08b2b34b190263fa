use gridcall::kernel;

const PATH: &str = "kernels/vector.ptx";

#[kernel(ptx = PATH)]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
