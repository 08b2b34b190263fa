use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[name = "relu"]
    safe fn rectify(y: &mut [f32], n: i32);
    #[name]
    safe fn zero(y: &mut [f32]);
}

fn main() {}
