use gridcall::{DeviceFn, cover, cudarc::driver::CudaStream, kernel};

#[kernel(ptx = "kernels/functions.ptx")]
unsafe extern "C" {
    static op_square: DeviceFn<fn(f32) -> f32>;
    static fold_add: DeviceFn<fn(f32, f32) -> f32>;
    static mut op_chosen: DeviceFn<fn(f32) -> f32>;
    static mut calls: u32;

    safe fn map_in_place(op: DeviceFn<fn(f32) -> f32>, y: &mut [f32], n: u32);
}

fn call(stream: &CudaStream, y: &mut gridcall::cudarc::driver::CudaSlice<f32>) {
    let square = op_square.get(stream).unwrap();
    let add = fold_add.get(stream).unwrap();
    let _ = map_in_place(stream, cover(1), &add, y, 1);
    let _ = map_in_place(stream, cover(1), square, y, 1);
    let _ = map_in_place(stream, cover(1), &square.address(), y, 1);
    let _ = op_square.read(stream);
    let _ = op_square.set(stream, &square);
    let _ = op_chosen.set(stream, &add);
    let _ = op_chosen.view(stream.context());
    let _ = calls.get(stream);
}

fn main() {}
