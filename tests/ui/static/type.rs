use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut taps: [f32; 4];
    static mut scale: u32;
    static mut hits: [u32; 2];
    #[name("math::offset")]
    static mut OFFSET: u64;
    static ramp: [f64; 2];
}

fn main() {}
