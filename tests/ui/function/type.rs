use gridcall::{DeviceFn, KernelArg, kernel};

struct NotAnArgument(f32);

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Chain {
    op: DeviceFn<fn(f32) -> f32>,
    then: fn(f32) -> f32,
}

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    static op_square: fn(f32) -> f32;
    static op_halve: DeviceFn<unsafe fn(f32) -> f32>;
    static op_deep: DeviceFn<extern "C" fn(f32) -> f32>;
    static op_none: DeviceFn<f32>;
    static op_chosen: DeviceFn<fn(NotAnArgument) -> f32>;

    unsafe fn map(op: fn(f32) -> f32, x: &[f32], y: &mut [f32], n: u32);
    unsafe fn map_in_place(op: [DeviceFn<fn(f32) -> f32>; 1], y: &mut [f32], n: u32);
    unsafe fn zip(x: &[DeviceFn<fn(f32) -> f32>], y: &mut [f32], n: u32, fold: DeviceFn<fn(&f32, f32) -> f32>);
    unsafe fn tally(count: DeviceFn<fn(&mut [u32], u64)>, counter: *mut u32);
    unsafe fn compare(test: DeviceFn<for<'a> fn(i16, bool) -> bool>, limit: i16, strict: bool, y: &mut [u8]);
    unsafe fn draw(on: DeviceFn<fn(fn(f32) -> f32, f32) -> f64>, line: Chain, y: &mut [f64]);
}

fn main() {}
