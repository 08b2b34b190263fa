use gridcall::kernel;

struct Nothing;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [Nothing], n: i32);
}

fn main() {}
