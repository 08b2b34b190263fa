use gridcall::kernel;

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn julia(out: &mut [u32], g: Gird);
}

fn main() {}
