use gridcall::kernel;

#[kernel(ptx = "kernels/headers.ptx")]
unsafe extern "C" {
    safe fn into_shared(x: &[f32]);
}

fn main() {}
