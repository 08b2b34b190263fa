use gridcall::kernel;

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    safe fn hinted(x: u64);
}

fn main() {}
