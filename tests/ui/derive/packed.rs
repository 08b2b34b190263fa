use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(C, packed)]
struct P {
    kind: u8,
    count: u32,
}

fn main() {}
