use gridcall::kernel;

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    safe fn huge(x: [u32; 1250]);
}

fn main() {}
