use gridcall::kernel;

#[kernel(ptx = concat!(env!("OUT_DIR"), "/vector.ptx"))]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
