use gridcall::{DeviceFn, KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Line {
    slope: f32,
    offset: f32,
}

type Op = fn(u64) -> f32;

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    static op_square: DeviceFn<fn(f64) -> f32>;
    static op_halve: DeviceFn<fn(f32)>;
    static fold_add: DeviceFn<fn(f32) -> f32>;
    static count_calls: DeviceFn<fn(*mut u32, u64) -> u32>;
    static on_line: DeviceFn<fn(Line, f32) -> f64>;
    static test_below: DeviceFn<fn(i16, bool) -> [f32; 1]>;
    static op_counted: DeviceFn<Op>;
    static mut op_table: [DeviceFn<fn(f32, f32) -> f32>; 3];
}

fn main() {}
