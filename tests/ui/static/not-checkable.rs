use gridcall::{KernelArg, cudarc::driver::CudaStream, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Window {
    first: i32,
    gain: f64,
}

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut window: Window;
}

fn get(stream: &CudaStream) {
    let _ = window.read(stream);
}

fn main() {}
