use gridcall::{DeviceFn, kernel};

#[kernel(ptx = "kernels/functions.ptx", cuda = "kernels/functions.cu")]
unsafe extern "C" {
    static op_square: DeviceFn<fn(u32) -> f32>;
    static fold_add: DeviceFn<fn(f32, i32) -> f32>;
    static count_calls: DeviceFn<fn(*const u32, u64)>;
    static test_below: DeviceFn<fn(u16, bool) -> bool>;
    static mut calls: u32;

    safe fn map(op: DeviceFn<fn(u32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
    safe fn tally(count: DeviceFn<fn(*mut f32, u64)>, counter: &mut [u32]);
}

/// By the kernel's name.
#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    safe fn map_in_place(op: DeviceFn<fn(i32) -> f32>, y: &mut [f32], n: u32);
}

fn main() {}
