use gridcall::kernel;

#[kernel(ptx("kernels/vector.ptx"))]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

#[kernel(ptx = "")]
unsafe extern "C" {
    safe fn zero(y: &mut [f32]);
}

fn main() {}
