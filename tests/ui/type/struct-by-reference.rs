use gridcall::kernel;

#[derive(Clone, Copy, gridcall::KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn julia(out: &mut [u32], g: &Grid);
}

fn main() {}
