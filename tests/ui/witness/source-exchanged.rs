use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    safe fn rowsum(x: &[f32], out: &mut [f32], cols: i32, rows: i32);
}

fn main() {}
