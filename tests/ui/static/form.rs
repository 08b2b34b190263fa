use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    unsafe static mut taps: [f32; 5];
    #[block(256)]
    static mut scale: f32;
    #[requires(true)]
    #[name("hits")]
    static mut HITS: u64;
    static ramp: [f32; 4] = [0.0; 4];
    static mut tiles;
}

fn main() {}
