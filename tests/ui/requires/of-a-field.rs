use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    #[requires(out.len() >= g.m)]
    safe fn julia(out: &mut [u32], g: Grid);
}

fn main() {}
