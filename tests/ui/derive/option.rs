use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[kernel_arg(krate = gridcall)]
#[repr(C)]
struct Point {
    x: f32,
}

fn main() {}
