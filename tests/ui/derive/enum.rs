use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
enum Mode {
    Nearest,
    Linear,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(u8)]
enum Shape {
    Circle(f32),
    Square,
}

fn main() {}
