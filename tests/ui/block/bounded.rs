use gridcall::kernel;

#[kernel(ptx = "kernels/shared.ptx")]
unsafe extern "C" {
    #[block(512)]
    safe fn bounded(y: &mut [f32], n: i32);
}

fn main() {}
