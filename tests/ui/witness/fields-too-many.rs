use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct P {
    kind: u8,
    count: u32,
    flag: u8,
    rest: u8,
}

#[kernel(ptx = "kernels/structs.ptx", cuda = "kernels/structs.cu")]
unsafe fn dump_p(p: P, out: &mut [u8]);

fn main() {}
