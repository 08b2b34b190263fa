use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[cluster]
    safe fn zero(y: &mut [f32]);
    #[cluster(0)]
    safe fn relu(y: &mut [f32], n: i32);
    #[cluster(2, 2, 1, 1)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);
    #[cluster(2)]
    #[cluster(4)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[cluster(8, 4)]
    safe fn copy(input: &[f32], out: &mut [f32], n: i32);
}

fn main() {}
