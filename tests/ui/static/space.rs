use gridcall::kernel;

#[kernel(ptx = "kernels/spaces.ptx")]
unsafe extern "C" {
    static mut s: [u8; 16];
    static mut elsewhere: f32;
}

fn main() {}
