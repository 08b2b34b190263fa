use gridcall::{cudarc::driver::CudaStream, kernel};

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static ramp: [f32; 4];
    static mut taps: [f32; 5];
}

fn set(stream: &CudaStream) {
    let _ = ramp.write(stream, &[0.0; 4]);
    let _ = taps.write(stream, &[0.0; 4]);
    let _: Result<[f64; 5], _> = taps.read(stream);
}

fn main() {}
