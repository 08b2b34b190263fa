use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut taps: &[f32];
    static mut scale: char;
    static mut window: (i32, f64);
    static mut tiles: [f32];
    static mut hits: [u64; 0];
    static mut marks: Vec<bool>;
    static ramp: *const f32;
}

fn main() {}
