use gridcall::kernel;

#[kernel(ptx = "kernels/narrow.ptx")]
unsafe extern "C" {
    safe fn fill(y: &mut [f32], v: f32);
}

fn main() {}
