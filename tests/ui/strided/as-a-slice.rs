use gridcall::kernel;

#[kernel(ptx = "kernels/strided.ptx")]
unsafe extern "C" {
    safe fn copy_2d(input: &[f32], out: StridedMut<f32, 2>);
}

fn main() {}
