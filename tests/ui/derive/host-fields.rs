use gridcall::KernelArg;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Table<'a> {
    data: *const f32,
    more: &'a [f32],
    name: &'a str,
    map: fn(f32) -> f32,
    pair: (u8, u32),
    letter: char,
}

#[derive(Clone, KernelArg)]
#[repr(C)]
struct Owned {
    data: Vec<f32>,
    name: String,
}

fn main() {}
