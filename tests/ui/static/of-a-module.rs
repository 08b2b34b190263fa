use gridcall::{Module, cudarc::driver::CudaStream, kernel};

#[kernel]
unsafe extern "C" {
    static mut taps: [f32; 5];
}

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut scale: f32;
}

fn mixed(stream: &CudaStream, module: &Module) {
    let _ = taps.write(stream, &[0.0; 5]);
    let _ = unsafe { scale.load_from(module) };
}

fn main() {}
