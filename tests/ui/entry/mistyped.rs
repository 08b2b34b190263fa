use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn transpsoe(input: &[f32], out: &mut [f32], rows: i32, cols: i32, total: i32);
}

fn main() {}
