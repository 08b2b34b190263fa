use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[kernel(ptx = "kernels/structs.ptx", cuda = "kernels/structs.cu")]
unsafe fn dump_p(p: Grid, out: &mut [u8]);

fn main() {}
