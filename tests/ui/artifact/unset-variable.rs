use gridcall::kernel;

#[kernel(ptx = concat!(env!("GRIDCALL_NO_SUCH_FOLDER"), "/vector.ptx"))]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
