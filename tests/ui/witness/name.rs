use gridcall::kernel;

#[kernel(ptx = "kernels/mangled.ptx")]
unsafe extern "C" {
    safe fn relu(y: &mut [f32], n: u32);
    #[name("stats::square")]
    safe fn square(y: &[f32], n: i32);
    #[name("add<double>")]
    safe fn add(y: &mut [f64], v: f64, n: u32);
}

fn main() {}
