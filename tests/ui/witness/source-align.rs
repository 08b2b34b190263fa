use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    safe fn copy4(x: &[f32], #[align(16)] y: &mut [f32], n4: i32);
}

fn main() {}
