use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[name("relu")]
    #[name("zero")]
    #[block(32)]
    #[block(64)]
    safe fn rectify(y: &mut [f32], n: i32);
}

fn main() {}
