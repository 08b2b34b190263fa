use gridcall::kernel;

#[kernel(ptx = "kernels/clusters.ptx")]
unsafe extern "C" {
    #[cluster(4)]
    unsafe fn pair(x: &[i32], y: &mut [i32]);
}

fn main() {}
