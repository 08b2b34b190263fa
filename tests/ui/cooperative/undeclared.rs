use gridcall::kernel;

#[kernel(ptx = "kernels/cooperative.ptx")]
unsafe extern "C" {
    unsafe fn rotate(a: &mut [i32], b: &mut [i32], n: i32, rounds: i32);
}

fn main() {}
