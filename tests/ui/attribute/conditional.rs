use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[cfg_attr(unix, name("relu"), doc = "On unix.")]
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
