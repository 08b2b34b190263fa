use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn pad(out: &mut [f32], n: u32);
}

fn main() {}
