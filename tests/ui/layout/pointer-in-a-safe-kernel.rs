use gridcall::{DevicePointer, KernelArg, kernel};

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Table<'a> {
    data: DevicePointer<'a, f32>,
    len: u32,
}

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn look(t: Table<'_>, out: &mut [f32]);
}

fn main() {}
