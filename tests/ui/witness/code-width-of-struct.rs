use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
    w: f32,
}

#[kernel(ptx = "kernels/vector.ptx")]
unsafe fn copy4(x: &[Point], #[align(16)] y: &mut [Point], n4: i32);

fn main() {}
