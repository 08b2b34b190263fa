use gridcall::kernel;

#[kernel(ptx = "kernels/cooperative.ptx")]
unsafe extern "C" {
    #[cooperative(132)]
    unsafe fn rotate(a: &mut [i32], b: &mut [i32], n: i32, rounds: i32);
    #[cooperative]
    #[cooperative]
    unsafe fn grid_sum(x: &[f32], parts: &mut [f32], out: &mut [f32], n: i32);
}

fn main() {}
