use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    dx: f32,
    x0: f32,
    n: i32,
}

#[kernel(ptx = "kernels/structs.ptx", cuda = "kernels/structs.cu")]
unsafe fn julia(out: &mut [u32], g: Grid);

fn main() {}
