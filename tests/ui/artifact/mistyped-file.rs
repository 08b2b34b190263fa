use gridcall::kernel;

#[kernel(ptx = "kernels/vectro.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: i32);
}

// The declaration is not compared, and calls to it resolve.
fn main() {
    let _ = relu::load;
}
