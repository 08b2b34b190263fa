use gridcall::kernel;

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn julia(out: &mut [u32], g: (f32, f32, i32));
}

fn main() {}
