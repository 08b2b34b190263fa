use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: u64);
    safe fn scale(y: f32, a: f64, n: i32);
    safe fn filll(y: &mut [f32], v: f32, n: i32);
}

fn main() {}
