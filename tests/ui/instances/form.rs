use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[instances(f32, f64)]
    safe fn a<T>(y: &mut [T], n: i32);
    #[instances(U = { f32 => "relu" })]
    safe fn b<T>(y: &mut [T], n: i32);
    #[instances(T = { f32 => "relu", f32 => "relu" })]
    safe fn c<T>(y: &mut [T], n: i32);
    #[instances(T = { f32 => "relu" })]
    safe fn relu(y: &mut [f32], n: i32);
    safe fn d<T, U>(y: &mut [T], x: &[U], n: i32);
    safe fn e<T: Copy>(y: &mut [T], n: i32);
}

fn main() {}
