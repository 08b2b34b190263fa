use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[rank(1)]
    #[block(16, 16)]
    safe fn relu(y: &mut [f32], n: i32);
    #[rank(2)]
    #[cluster(1, 1, 2)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);
}

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    #[rank(1)]
    safe fn fixed();
}

fn main() {}
