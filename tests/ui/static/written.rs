use gridcall::kernel;

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static hits: u64;
    static ramp: [f32; 4];
}

fn main() {}
