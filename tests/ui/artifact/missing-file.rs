use gridcall::kernel;

#[kernel(ptx = "kernels/nothing.ptx")]
unsafe extern "C" {
    safe fn nothing();
}

fn main() {}
