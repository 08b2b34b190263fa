//! Tensors of candle as arguments, in custom ops and outside.

mod kernels;
mod ops;
mod tensors;

/// The first GPU as candle has it.
fn device() -> candle_core::Device {
    candle_core::Device::new_cuda(0).expect("these tests need a GPU")
}

/// The stream on which candle works.
fn stream(device: &candle_core::Device) -> std::sync::Arc<gridcall::cudarc::driver::CudaStream> {
    device.as_cuda_device().unwrap().cuda_stream()
}

/// 0, 1, 2, .. in a shape.
fn ramp(device: &candle_core::Device, shape: &[usize]) -> candle_core::Tensor {
    let len: usize = shape.iter().product();
    let values: Vec<f32> = (0_u16..).map(f32::from).take(len).collect();
    candle_core::Tensor::from_vec(values, shape, device).unwrap()
}
