use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn relu(y: std::sync::Arc<[f32]>, n: Box<i32>);
}

fn main() {}
