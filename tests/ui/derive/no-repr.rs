use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
struct P {
    kind: u8,
    count: u32,
    flag: u8,
}

fn main() {}
