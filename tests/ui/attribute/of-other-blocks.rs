use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[link_name = "relu"]
    safe fn rectify(y: &mut [f32], n: i32);
    #[launch_bounds(256)]
    safe fn zero(y: &mut [f32]);
}

fn main() {}
