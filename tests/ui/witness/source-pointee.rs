use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    safe fn gather(x: &[f32], idx: &[u32], out: &mut [f32], n: i32);
    safe fn add_f64(a: &[f32], b: &[f64], out: &mut [f64], n: i32);
}

fn main() {}
