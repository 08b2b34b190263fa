use gridcall::KernelArg;

#[derive(KernelArg)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

fn main() {}
