use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    safe fn copy(input: &mut [f32], out: &[f32], n: i32);
}

fn main() {}
