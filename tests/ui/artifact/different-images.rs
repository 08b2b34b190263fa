use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

#[kernel(ptx = ["kernels/first.ptx", "kernels/second.ptx"])]
unsafe fn swap(pair: Pair, out: &mut [f32]);

fn main() {}
