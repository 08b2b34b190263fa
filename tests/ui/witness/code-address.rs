use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn copy(input: u64, out: usize, n: i32);
}

fn main() {}
