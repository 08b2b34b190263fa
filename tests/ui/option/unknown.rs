use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", target = "sm_75")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

#[kernel(ptz = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

fn main() {}
