use gridcall::{Float4, Float3, kernel};

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn step(b: Float3, v: &mut [Float3], g: Float4, n: i32);
}

fn main() {}
