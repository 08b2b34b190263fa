use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn add_f64(a: &[f32], b: &[f64], out: &mut [f64], n: i32);
    safe fn rowsum(x: &[f64], out: &mut [f32], rows: i32, cols: i32);
    safe fn copy4(x: &[f32], #[align(16)] y: &mut [f32], n4: i32);
}

fn main() {}
