use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu<T>(y: &mut [T], n: i32);
}

#[kernel]
unsafe extern "C" {
    safe fn later<T>(y: &mut [T], n: i32);
}

fn main() {}
