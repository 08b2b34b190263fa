use gridcall::{DeviceFn, Float4, KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Line {
    slope: f32,
    offset: f64,
}

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    safe fn map(op: DeviceFn<fn(f32, f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
    safe fn map_in_place(op: DeviceFn<fn(f32) -> f64>, y: &mut [f32], n: u32);
    safe fn draw(on: DeviceFn<fn(Float4, f32) -> f64>, line: Line, y: &mut [f64]);
}

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    safe fn zip(x: &[f32], y: &mut [f32], n: u32, fold: u64);
    safe fn compare(test: &[u8], limit: i16, strict: bool, y: &mut [u8]);
    safe fn tally(count: DeviceFn<fn(*mut u32, u64)>, counter: DeviceFn<fn()>);
    safe fn map_chosen(y: &mut [f32], n: DeviceFn<fn()>);
}

fn main() {}
