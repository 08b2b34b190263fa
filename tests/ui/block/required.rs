use gridcall::kernel;

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    #[block(8, 16)]
    safe fn fixed();
}

fn main() {}
