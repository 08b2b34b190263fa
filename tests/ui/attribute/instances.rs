use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[instances(T = { f32 => "relu" })]
    safe fn relu(y: &mut [f32], n: i32);
}

fn main() {}
