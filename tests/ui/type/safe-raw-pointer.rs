use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: u32, a: f32, x: *const f32, y: *mut f32);
}

fn main() {}
