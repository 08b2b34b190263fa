use gridcall::kernel;

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    safe fn helper();
}

fn main() {}
