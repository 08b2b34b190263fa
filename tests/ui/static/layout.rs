use gridcall::{DevicePointer, KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Window {
    first: i32,
    gain: f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(32))]
struct Ball {
    x: f32,
}

struct NotAnArgument([f32; 5]);

#[kernel(ptx = "kernels/symbols.ptx")]
unsafe extern "C" {
    static mut window: Window;
    static mut tiles: [Ball; 2];
    static mut hits: DevicePointer<'static, f32>;
    static mut taps: NotAnArgument;
}

fn main() {}
