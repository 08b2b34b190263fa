use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Ball {
    id: i32,
    pos: [f32; 4],
}

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn step(b: Ball, v: &mut [[f32; 3]], g: [f32; 3], n: i32);
}

fn main() {}
