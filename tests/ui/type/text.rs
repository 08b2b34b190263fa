use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: u32, a: f32, x: &str, y: String);
}

fn main() {}
