use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn transpose(input: &[f32], out: &mut [f32], rows: i32, cols: i32);
}

fn main() {}
