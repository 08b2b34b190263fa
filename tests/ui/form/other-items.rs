use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    static LIMIT: u32;
    type Image;
    declare!();
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
