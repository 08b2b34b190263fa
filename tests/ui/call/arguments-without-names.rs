use gridcall::cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use gridcall::{LoadError, cover, kernel};
use std::sync::Arc;

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn relu(y: &mut [f32], n: i32);
}

fn call(
    context: &Arc<CudaContext>,
    stream: &CudaStream,
    y: &mut CudaSlice<f32>,
) -> Result<(), LoadError> {
    let kernel = relu::load(context)?;
    let _ = kernel.launch(stream, cover(10), (y, 10));
    Ok(())
}

fn main() {}
