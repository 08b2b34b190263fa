use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Wave {
    steps: u32,
    start: num_complex::Complex<f32>,
}

fn main() {}
