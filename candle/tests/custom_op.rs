//! Custom ops whose kernels take candle's tensors as they lie. Needs a GPU: without one, candle
//! gives no device and the tests say so.

use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, DType, Device, Error, InplaceOp1, Layout, Result, Shape,
    Tensor, cuda_backend::CudaDType,
};
use gridcall::{Shaped, cover, kernel};
use gridcall_candle::{read, write};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    safe fn copy(input: &[f32], out: &mut [f32], n: i32);

    /// y ← a·y
    #[requires(y.len() >= n)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    /// out ← input
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

/// A contiguous tensor, or one in two dimensions as it lies, to a new one.
struct Copied {
    strided: bool,
}

impl CustomOp1 for Copied {
    fn name(&self) -> &'static str {
        "copied"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("for CUDA only")
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let stream = storage.device.cuda_stream();
        let len = layout.shape().elem_count();
        let mut out = stream.alloc_zeros::<f32>(len).map_err(Error::wrap)?;
        let input = read(storage, layout);
        if self.strided {
            let (rows, columns) = layout.shape().dims2()?;
            let mut shaped = Shaped::new(&mut out, [rows, columns]);
            copy_2d(&stream, cover((columns, rows)), &input, &mut shaped).map_err(Error::wrap)?;
        } else {
            let n = i32::try_from(len).map_err(Error::wrap)?;
            copy(&stream, cover(n), &input, &mut out, n).map_err(Error::wrap)?;
        }
        let out = f32::wrap_cuda_slice(out, storage.device.clone());
        Ok((out, layout.shape().clone()))
    }
}

struct Scaled(f32);

impl InplaceOp1 for Scaled {
    fn name(&self) -> &'static str {
        "scaled"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout) -> Result<()> {
        candle_core::bail!("for CUDA only")
    }

    fn cuda_fwd(&self, storage: &mut CudaStorage, layout: &Layout) -> Result<()> {
        let stream = storage.device.cuda_stream();
        let n = i32::try_from(layout.shape().elem_count()).map_err(Error::wrap)?;
        let mut y = write(storage, layout);
        scale(&stream, cover(n), &mut y, self.0, n).map_err(Error::wrap)
    }
}

fn device() -> Option<Device> {
    match Device::new_cuda(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("not run, for want of a device: {error}");
            None
        }
    }
}

fn matrix(device: &Device) -> Tensor {
    let values = Tensor::arange(0_f32, 18.0, device).unwrap();
    values.reshape((6, 3)).unwrap()
}

const WHOLE: Copied = Copied { strided: false };

#[test]
fn an_offset_view_begins_where_it_begins() {
    let Some(device) = device() else { return };
    let rows = matrix(&device).narrow(0, 2, 3).unwrap();
    let out = rows.apply_op1_no_bwd(&WHOLE).unwrap();
    let expected: Vec<Vec<f32>> = rows.to_vec2().unwrap();
    assert_eq!(out.to_vec2::<f32>().unwrap(), expected);
}

#[test]
fn a_transposed_tensor_is_told_or_read_as_it_lies() {
    let Some(device) = device() else { return };
    let transposed = matrix(&device).t().unwrap();
    let error = transposed.apply_op1_no_bwd(&WHOLE).unwrap_err().to_string();
    assert!(
        error.contains("not contiguous: shape [3, 6], strides [1, 3]"),
        "{error}"
    );
    assert!(error.contains("`.contiguous()?`"), "{error}");
    let out = transposed
        .apply_op1_no_bwd(&Copied { strided: true })
        .unwrap();
    let expected: Vec<Vec<f32>> = transposed.to_vec2().unwrap();
    assert_eq!(out.to_vec2::<f32>().unwrap(), expected);
}

#[test]
fn another_element_type_is_told_in_candles_words() {
    let Some(device) = device() else { return };
    let wrong = matrix(&device).to_dtype(DType::U32).unwrap();
    let error = wrong.apply_op1_no_bwd(&WHOLE).unwrap_err().to_string();
    assert!(
        error.contains("the array holds DType::U32; convert it first: `.to_dtype(DType::F32)?`"),
        "{error}"
    );
}

#[test]
fn a_part_is_written_in_place() {
    let Some(device) = device() else { return };
    let whole = matrix(&device);
    whole
        .narrow(0, 1, 2)
        .unwrap()
        .inplace_op1(&Scaled(2.0))
        .unwrap();
    let values: Vec<f32> = whole.flatten_all().unwrap().to_vec1().unwrap();
    let expected = (0..18_u8).map(|n| f32::from(n) * if (3..9).contains(&n) { 2.0 } else { 1.0 });
    assert_eq!(values, expected.collect::<Vec<f32>>());
}
