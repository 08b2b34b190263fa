//! The runtime under another name, as behind a crate that re-exports it.

#![allow(dead_code, reason = "that it compiles is the test")]

mod facade {
    pub(crate) mod gpu {
        pub(crate) use ::gridcall::*;
    }
}

/// What `::gridcall` would find, if the generated code looked there.
mod gridcall {}

use facade::gpu::{AsDeviceView, AsDeviceViewMut, KernelArg, kernel};

#[kernel(ptx = "../kernels/vector.ptx", crate = crate::facade::gpu)]
unsafe extern "C" {
    #[requires(x.len() >= n, y.len() >= n)]
    pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

#[kernel(crate = facade::gpu, ptx = "../kernels/structs.ptx")]
unsafe fn julia(out: &mut [u32], g: Grid);

#[derive(Clone, Copy, KernelArg)]
#[kernel_arg(crate = facade::gpu)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[derive(AsDeviceView, AsDeviceViewMut)]
#[view(crate = facade::gpu)]
struct Samples(facade::gpu::cudarc::driver::CudaSlice<f32>);

/// A facade's own macro needs `$crate` and nothing of its user.
macro_rules! declare {
    ($name:ident) => {
        #[kernel(ptx = "../kernels/vector.ptx", crate = $crate::facade::gpu)]
        #[name("scale")]
        unsafe fn $name(y: &mut [f32], a: f32, n: i32);
    };
}

declare!(scale);

#[test]
fn it_compiles() {
    let _ = saxpy::load;
}
