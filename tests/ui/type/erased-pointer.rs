use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    unsafe fn relu(y: *mut dyn Send, n: i32);
}

fn main() {}
