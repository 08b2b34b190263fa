use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(transparent)]
struct Meters(f32, ());

#[derive(Clone, Copy, KernelArg)]
enum Never {}

fn main() {}
