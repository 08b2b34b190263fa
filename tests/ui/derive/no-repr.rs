use gridcall::{KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
struct P {
    kind: u8,
    count: u32,
    flag: u8,
}

// What takes the struct gives no errors of its own.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Pair {
    both: [P; 2],
    n: i32,
}

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn julia(out: &mut [u32], g: P);
    #[name("julia")]
    safe fn again(out: &mut [u32], g: Pair);
}

#[kernel]
unsafe extern "C" {
    static mut PARTICLE: P;
    safe fn later(p: P);
}

fn main() {}
