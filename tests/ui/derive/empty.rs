use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Nothing;

fn main() {}
