use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn saxpy(n: impl Into<u32>, a: f32, x: &dyn AsRef<[f32]>, y: &mut [impl Copy]);
}

fn main() {}
