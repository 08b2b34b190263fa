use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut tabs: [f32; 5];
    static mut TAPS: [f32; 5];
    #[name("math::of_set")]
    static mut OFFSET: i32;
    static mut filter: [f32; 5];
    static mut nothing_like_it: [f32; 5];
}

fn main() {}
