use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[instances(T = { f64 => "add_f64", f32 => "add_f32", i32 => "gather" })]
    safe fn plus<T>(a: &[T], b: &[T], out: &mut [T], n: i32);
}

fn main() {}
