use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[align(16)]
    safe fn relu(y: &mut [f32], n: i32);
    safe fn zero(#[alingn(16)] y: &mut [f32]);
}

fn main() {}
