use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu<T>(y: &mut [T], n: i32);
    safe fn copy<'a>(input: &'a [f32], out: &mut [f32], n: i32);
    safe fn zero(y: &mut [f32]) where f32: Copy;
}

fn main() {}
