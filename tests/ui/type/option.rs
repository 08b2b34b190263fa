use gridcall::kernel;

#[kernel(ptx = "kernels/scalars.ptx")]
unsafe extern "C" {
    safe fn maybe(x: Option<&mut [f32]>, out: Option<*mut f32>, n: Option<i32>);
}

fn main() {}
