use gridcall::kernel;

#[kernel(ptx = "kernels/broken.ptx")]
unsafe extern "C" {
    safe fn broken(n: u32);
}

fn main() {}
