//! The generated code names nothing of the prelude.

#![no_implicit_prelude]
#![allow(dead_code, reason = "that it compiles is the test")]

#[::gridcall::kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(x.len() >= n, y.len() >= n, shared_mem_bytes == 0, grid.blocks() <= 64)]
    pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

#[::gridcall::kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    pub unsafe fn maybe(x: ::core::option::Option<&[f32]>, out: &mut [f32], n: i32);
    #[name("maybe")]
    pub unsafe fn pointers(x: *const f32, out: *mut f32, n: i32);
}

#[::gridcall::kernel(ptx = "../kernels/symbols.ptx")]
unsafe extern "C" {
    static mut taps: [f32; 5];
    pub static ramp: [f32; 4];
}

#[::gridcall::kernel(ptx = "../kernels/functions.ptx")]
unsafe extern "C" {
    pub static op_square: ::gridcall::DeviceFn<fn(f32) -> f32>;
    static mut op_table: [::gridcall::DeviceFn<fn(f32) -> f32>; 3];
    #[requires(x.len() >= n, y.len() >= n)]
    pub safe fn map(op: ::gridcall::DeviceFn<fn(f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
}

#[::gridcall::kernel]
unsafe extern "C" {
    static mut scale: f32;
}

#[::gridcall::kernel(ptx = "../kernels/tensor_map.ptx")]
unsafe extern "C" {
    #[requires(from.tile(0) == 8, to.extent(0) >= 8)]
    pub safe fn scale_tiles(from: TensorMap<f32>, to: TensorMapMut<f32>, a: f32);
}

#[::gridcall::kernel(ptx = "../kernels/texture.ptx")]
unsafe extern "C" {
    #[requires(x.len() >= n)]
    pub safe fn pairs(x: Texture<::gridcall::UInt2>, y: &mut [u32], n: u32);
}

#[::gridcall::kernel(ptx = "../kernels/conditional.ptx")]
unsafe extern "C" {
    pub safe fn set_condition(condition: GraphCondition, value: u32);
}

#[::gridcall::kernel(ptx = "../kernels/structs.ptx")]
unsafe fn julia(out: &mut [u32], g: Grid);

#[derive(::core::clone::Clone, ::core::marker::Copy, ::gridcall::KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: Count,
}

#[derive(::core::clone::Clone, ::core::marker::Copy, ::gridcall::KernelArg)]
#[repr(i32)]
enum Count {
    One = 1,
}

#[derive(::gridcall::AsDeviceView, ::gridcall::AsDeviceViewMut)]
struct Samples(::gridcall::cudarc::driver::CudaSlice<f32>);

#[derive(::gridcall::AsDeviceView)]
struct Image<'a, A> {
    #[view]
    pixels: &'a A,
    width: u32,
}

#[::core::prelude::v1::test]
fn it_compiles() {
    let _ = saxpy::load;
}
