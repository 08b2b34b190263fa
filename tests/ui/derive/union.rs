use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
union Bits {
    float: f32,
    int: u32,
}

fn main() {}
