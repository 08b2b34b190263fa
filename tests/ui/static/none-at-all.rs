use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    static mut taps: [f32; 5];
}

fn main() {}
