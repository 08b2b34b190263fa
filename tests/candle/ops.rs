//! What a custom op is handed is an argument: storage with layout, read and written in place.

use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, Error, InplaceOp1, InplaceOp2, Layout, Result,
    Shape, bail,
};
use gridcall::{
    Shaped,
    candle::{StorageView, StorageViewMut},
    cover,
};

use crate::{
    device,
    kernels::{add_2d, copy, saxpy, scale},
    ramp,
};

/// The tensor's elements in a tensor of their own.
struct Copied;

impl CustomOp1 for Copied {
    fn name(&self) -> &'static str {
        "copied"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("for CUDA devices")
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let len = layout.shape().elem_count();
        let n = i32::try_from(len).map_err(Error::wrap)?;
        let mut out = x.device.alloc_zeros::<f32>(len)?;
        let stream = x.device.cuda_stream();
        copy(&stream, cover(n), &StorageView::new(x, layout), &mut out, n)?;
        let out = CudaStorage::wrap_cuda_slice(out, x.device.clone());
        Ok((out, layout.shape().clone()))
    }
}

/// The sum of two matrices, however they lie.
struct Added;

impl CustomOp2 for Added {
    fn name(&self) -> &'static str {
        "added"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("for CUDA devices")
    }

    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        a_layout: &Layout,
        b: &CudaStorage,
        b_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let shape = a_layout.shape();
        let (rows, columns) = shape.dims2()?;
        let mut out = a.device.alloc_zeros::<f32>(rows * columns)?;
        let mut shaped = Shaped::new(&mut out, [rows, columns]);
        let (a_view, b_view) = (StorageView::new(a, a_layout), StorageView::new(b, b_layout));
        let stream = a.device.cuda_stream();
        add_2d(
            &stream,
            cover((columns, rows)),
            &a_view,
            &b_view,
            &mut shaped,
        )?;
        let out = CudaStorage::wrap_cuda_slice(out, a.device.clone());
        Ok((out, shape.clone()))
    }
}

struct Scaled(f32);

impl InplaceOp1 for Scaled {
    fn name(&self) -> &'static str {
        "scaled"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout) -> Result<()> {
        bail!("for CUDA devices")
    }

    fn cuda_fwd(&self, y: &mut CudaStorage, layout: &Layout) -> Result<()> {
        let n = i32::try_from(layout.shape().elem_count()).map_err(Error::wrap)?;
        let stream = y.device.cuda_stream();
        scale(
            &stream,
            cover(n),
            &mut StorageViewMut::new(y, layout),
            self.0,
            n,
        )?;
        Ok(())
    }
}

struct AddedTo;

impl InplaceOp2 for AddedTo {
    fn name(&self) -> &'static str {
        "added-to"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<()> {
        bail!("for CUDA devices")
    }

    fn cuda_fwd(
        &self,
        y: &mut CudaStorage,
        y_layout: &Layout,
        x: &CudaStorage,
        x_layout: &Layout,
    ) -> Result<()> {
        let n = u32::try_from(y_layout.shape().elem_count()).map_err(Error::wrap)?;
        let stream = y.device.cuda_stream();
        let x = StorageView::new(x, x_layout);
        let mut y = StorageViewMut::new(y, y_layout);
        saxpy(&stream, cover(n), n, 1.0, &x, &mut y)?;
        Ok(())
    }
}

#[test]
fn a_view_begins_at_its_offset() {
    let x = ramp(&device(), &[6, 3]);
    let rows = x.narrow(0, 2, 3).unwrap().apply_op1(Copied).unwrap();
    assert_eq!(rows.dims(), [3, 3]);
    let expected: Vec<f32> = (6_u16..15).map(f32::from).collect();
    assert_eq!(
        rows.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
        expected
    );
}

#[test]
fn another_order_of_elements_is_told_and_a_strided_parameter_takes_it() {
    let x = ramp(&device(), &[2, 3]);
    let transposed = x.t().unwrap();
    let error = transposed.apply_op1(Copied).unwrap_err().to_string();
    let expected = "kernel `copy`: argument `input` (parameter 0, &[f32]): the array is not contiguous: shape [3, 2], strides [1, 3] in elements; make it contiguous first: `.contiguous()?`, or declare the parameter `Strided<T, N>`";
    assert!(error.starts_with(expected), "{error}");
    let columns = ramp(&device(), &[3, 2]);
    let sum = transposed.apply_op2(&columns, Added).unwrap();
    assert_eq!(
        sum.to_vec2::<f32>().unwrap(),
        [[0., 4.], [3., 7.], [6., 10.]]
    );
    let row = x.narrow(0, 1, 1).unwrap().broadcast_as((2, 3)).unwrap();
    let sum = row.apply_op2(&x, Added).unwrap();
    assert_eq!(sum.to_vec2::<f32>().unwrap(), [[3., 5., 7.], [6., 8., 10.]]);
}

#[test]
fn a_part_is_written_in_place() {
    let x = ramp(&device(), &[6]);
    x.narrow(0, 2, 3)
        .unwrap()
        .inplace_op1(&Scaled(10.0))
        .unwrap();
    assert_eq!(x.to_vec1::<f32>().unwrap(), [0., 1., 20., 30., 40., 5.]);
    let (first, last) = (x.narrow(0, 0, 3).unwrap(), x.narrow(0, 3, 3).unwrap());
    let last = last.copy().unwrap();
    first.inplace_op2(&last, &AddedTo).unwrap();
    assert_eq!(x.to_vec1::<f32>().unwrap(), [30., 41., 25., 30., 40., 5.]);
}

#[test]
fn what_is_not_contiguous_is_not_written_as_if_it_were() {
    let x = ramp(&device(), &[2, 2]);
    let error = x
        .t()
        .unwrap()
        .inplace_op1(&Scaled(2.0))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("argument `y` (parameter 0, &mut [f32]): the array is not contiguous"),
        "{error}"
    );
    assert_eq!(x.to_vec2::<f32>().unwrap(), [[0., 1.], [2., 3.]]);
}

#[test]
fn ops_of_candle_and_kernels_take_turns_in_order() {
    let device = device();
    let mut x = ramp(&device, &[1 << 16]).affine(0.0, 0.0).unwrap();
    for _ in 0..1000 {
        x = (x + 1.0).unwrap().apply_op1(Copied).unwrap();
        x.inplace_op1(&Scaled(1.0)).unwrap();
    }
    let sum = x.sum_all().unwrap().to_scalar::<f32>().unwrap();
    assert_eq!(sum, 65_536_000.0);
}
