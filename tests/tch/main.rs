//! Tensors of tch as arguments.

use gridcall::{
    Shaped, cover,
    cudarc::driver::CudaStream,
    kernel,
    tch::{TensorView, TensorViewMut},
};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

#[kernel(ptx = "../../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·y
    #[requires(y.len() >= n)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    safe fn copy(input: &[f32], out: &mut [f32], n: i32);

    /// out[i] ← x[idx[i]]
    #[requires(idx.len() >= n, out.len() >= n)]
    unsafe fn gather(x: &[f32], idx: &[i32], out: &mut [f32], n: i32);
}

#[kernel(ptx = "../../kernels/strided.ptx")]
unsafe extern "C" {
    /// out ← input
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

const GPU: Device = Device::Cuda(0);

/// A stream that is not PyTorch's.
fn stream() -> Arc<CudaStream> {
    assert!(tch::Cuda::is_available(), "these tests need a GPU");
    gridcall::device(0).unwrap().new_stream().unwrap()
}

fn ramp(shape: &[i64]) -> Tensor {
    Tensor::arange(shape.iter().product::<i64>(), (Kind::Float, GPU)).reshape(shape)
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.flatten(0, -1)).unwrap()
}

#[test]
fn a_tensor_is_an_argument_in_place_and_out_of_place() {
    let stream = stream();
    let (x, mut y) = (ramp(&[2, 3]), Tensor::ones([6], (Kind::Float, GPU)));
    saxpy(
        &stream,
        cover(6),
        6,
        2.0,
        &TensorView::new(&x),
        &mut TensorViewMut::new(&mut y),
    )
    .unwrap();
    assert_eq!(floats(&y), [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    let mut part = y.narrow(0, 2, 3);
    scale(
        &stream,
        cover(3),
        &mut TensorViewMut::new(&mut part),
        10.0,
        3,
    )
    .unwrap();
    assert_eq!(floats(&y), [1.0, 3.0, 50.0, 70.0, 90.0, 11.0]);
}

#[test]
fn a_view_begins_at_its_offset_and_is_as_long_as_it_is() {
    let stream = stream();
    let rows = ramp(&[6, 3]).narrow(0, 2, 3);
    let mut out = stream.alloc_zeros::<f32>(18).unwrap();
    copy(&stream, cover(9), &TensorView::new(&rows), &mut out, 9).unwrap();
    let expected: Vec<f32> = (6_u16..15).map(f32::from).collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap()[..9], expected);
    let error = copy(&stream, cover(10), &TensorView::new(&rows), &mut out, 10).unwrap_err();
    assert!(
        error.to_string().contains("input.len() is 9 and n is 10"),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_told_in_its_words() {
    let stream = stream();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    let x = ramp(&[6]);
    let idx = Tensor::arange(6, (Kind::Int64, GPU));
    let (x, idx) = (TensorView::new(&x), TensorView::new(&idx));
    // SAFETY: nothing is launched.
    let error = unsafe { gather(&stream, cover(6), &x, &idx, &mut out, 6) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `gather`: argument `idx` (parameter 1, &[i32]): expected elements of i32, the array holds Kind::Int64; convert it first: `.to_kind(Kind::Int)`"
    );
    let mut refused = |x: &Tensor, text: &str| {
        let error = copy(&stream, cover(6), &TensorView::new(x), &mut out, 6)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("kernel `copy`: argument `input` (parameter 0, &[f32]): "),
            "{error}"
        );
        assert!(error.contains(text), "{error}");
    };
    refused(
        &ramp(&[2, 3]).tr(),
        "shape [3, 2], strides [1, 3] in elements; make it contiguous first: `.contiguous()`",
    );
    refused(
        &ramp(&[6]).to_device(Device::Cpu),
        "move it there first: `.to_device(Device::Cuda(0))`",
    );
    refused(&ramp(&[6]).internal_neg_view(), "pass `.resolve_neg()`");
    refused(&ramp(&[6]).to_sparse(None, None::<i64>, None), "sparse");
    refused(&Tensor::new(), "undefined");
    refused(
        &Tensor::zeros([6], (Kind::ComplexHalf, GPU)),
        "of a kind which no element type here stands for",
    );
}

#[test]
fn a_transposed_tensor_is_taken_as_it_lies() {
    let stream = stream();
    let x = ramp(&[2, 3]).tr();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    let mut shaped = Shaped::new(&mut out, [3, 2]);
    copy_2d(
        &stream,
        cover((2_u32, 3_u32)),
        &TensorView::new(&x),
        &mut shaped,
    )
    .unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    );
}

#[test]
fn memory_that_was_given_to_another_is_not_used() {
    let stream = stream();
    let x = ramp(&[6]);
    let mut handle = x.shallow_clone();
    let view = TensorView::new(&x);
    let _ = handle.resize_([1 << 22]);
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    let error = copy(&stream, cover(6), &view, &mut out, 6)
        .unwrap_err()
        .to_string();
    assert!(error.contains("view it anew"), "{error}");
}

#[test]
fn launches_and_tchs_own_work_take_turns_without_a_synchronisation() {
    let stream = stream();
    let mut x = Tensor::zeros([1 << 20], (Kind::Float, GPU));
    let mut y = Tensor::zeros([1 << 20], (Kind::Float, GPU));
    for _ in 0..1000 {
        x = x + 1.0;
        saxpy(
            &stream,
            cover(1 << 20),
            1 << 20,
            1.0,
            &TensorView::new(&x),
            &mut TensorViewMut::new(&mut y),
        )
        .unwrap();
        y = y + 1.0;
    }
    let expected = 1000.0 * 1001.0 / 2.0 + 1000.0;
    assert_eq!(y.min().double_value(&[]), expected);
    assert_eq!(y.max().double_value(&[]), expected);
}
