use gridcall::kernel;

#[kernel(ptx = "kernels/mangled.ptx")]
unsafe extern "C" {
    #[instances(T = { f32, i32 })]
    safe fn add<T>(y: &mut [T], v: T, n: i32);
}

fn main() {}
