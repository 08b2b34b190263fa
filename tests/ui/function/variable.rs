use gridcall::{DeviceFn, kernel};

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    static op_table: [DeviceFn<fn(f32) -> f32>; 2];
    static calls: DeviceFn<fn(f32) -> f32>;
}

#[kernel(ptx = "kernels/pointers.ptx")]
unsafe extern "C" {
    static to_data: DeviceFn<fn(f32) -> f32>;
    static number: DeviceFn<fn(f32) -> f32>;
    static within: DeviceFn<fn(f32) -> f32>;
}

fn main() {}
