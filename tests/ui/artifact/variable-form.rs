use gridcall::kernel;

const FOLDER: &str = "kernels";

#[kernel(ptx = concat!(env!(FOLDER), "/vector.ptx"))]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
