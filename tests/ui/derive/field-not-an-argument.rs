use gridcall::KernelArg;

#[derive(Clone, Copy)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Line {
    from: Point,
    to: Point,
}

fn main() {}
