use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y >= n, n.len() <= y.len())]
    safe fn relu(y: &mut [f32], n: i32);
    #[requires(x.len() >= n, (y.size() >= n))]
    safe fn copy(x: Option<&[f32]>, y: &mut [f32], n: i32);
}

fn main() {}
