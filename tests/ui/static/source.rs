use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx", cuda = "kernels/symbols.cu")]
unsafe extern "C" {
    static mut taps: [i32; 5];
    static mut scale: f32;
    static mut ramp: [f32; 4];
    static mut hits: i64;
    static mut marks: [u8; 4];
    #[name("math::offset")]
    static mut OFFSET: u32;
}

fn main() {}
