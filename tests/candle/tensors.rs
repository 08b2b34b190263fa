//! A tensor is an argument outside of ops too, and what does not fit is told in candle's words.

use candle_core::{DType, Device, Layout, Shape, Storage, Tensor};
use gridcall::{Shaped, candle::StorageView, cover};

use crate::{
    device,
    kernels::{copy, copy_2d, gather},
    ramp, stream,
};

#[test]
fn a_view_is_as_long_as_it_is() {
    let device = device();
    let stream = stream(&device);
    let rows = ramp(&device, &[6, 3]).narrow(0, 2, 3).unwrap();
    let mut out = stream.alloc_zeros::<f32>(18).unwrap();
    copy(&stream, cover(9), &StorageView::of(&rows), &mut out, 9).unwrap();
    let expected: Vec<f32> = (6_u16..15).map(f32::from).collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap()[..9], expected);
    let error = copy(&stream, cover(10), &StorageView::of(&rows), &mut out, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy`: the launch needs `input.len() >= n`, but input.len() is 9 and n is 10"
    );
}

#[test]
fn another_element_type_is_told() {
    let device = device();
    let stream = stream(&device);
    let x = ramp(&device, &[4]);
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let idx = Tensor::new(&[3_u32, 2, 1, 0], &device).unwrap();
    let mut launch = |idx: &Tensor| {
        let (x, idx) = (StorageView::of(&x), StorageView::of(idx));
        // SAFETY: the indices are within x.
        unsafe { gather(&stream, cover(4), &x, &idx, &mut out, 4) }
    };
    assert_eq!(
        launch(&idx).unwrap_err().to_string(),
        "kernel `gather`: argument `idx` (parameter 1, &[i32]): expected elements of i32, the array holds DType::U32; convert it first: `.to_dtype(DType::I32)?`"
    );
    launch(&idx.to_dtype(DType::I32).unwrap()).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn a_transposed_tensor_is_taken_as_it_lies() {
    let device = device();
    let stream = stream(&device);
    let x = ramp(&device, &[2, 3]).t().unwrap();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    let mut shaped = Shaped::new(&mut out, [3, 2]);
    copy_2d(
        &stream,
        cover((2_u32, 3_u32)),
        &StorageView::of(&x),
        &mut shaped,
    )
    .unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    );
}

#[test]
fn a_tensor_of_the_host_is_told() {
    let stream = stream(&device());
    let x = ramp(&Device::Cpu, &[4]);
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let error = copy(&stream, cover(4), &StorageView::of(&x), &mut out, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy`: argument `input` (parameter 0, &[f32]): the tensor is not on a CUDA device; move it there first: `.to_device(&Device::new_cuda(0)?)?`"
    );
}

#[test]
fn a_layout_that_reaches_beyond_the_storage_is_told() {
    let device = device();
    let stream = stream(&device);
    let x = ramp(&device, &[4]);
    let (storage, _) = x.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else {
        panic!("made on the GPU");
    };
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    for (dims, strides, offset) in [
        (vec![5], vec![1], 0),
        (vec![4], vec![1], 1),
        (vec![2, 2], vec![3, 1], 0),
        (vec![2], vec![usize::MAX], 3),
        (vec![usize::MAX, 2], vec![0, 0], 0),
        (vec![4, 1], vec![1], 0),
    ] {
        let layout = Layout::new(Shape::from(dims), strides, offset);
        let error = copy(
            &stream,
            cover(2),
            &StorageView::new(storage, &layout),
            &mut out,
            2,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("reaches beyond them"), "{error}");
    }
    let layout = Layout::new(Shape::from(vec![0, 7]), vec![7, 1], 400);
    copy(
        &stream,
        cover(0),
        &StorageView::new(storage, &layout),
        &mut out,
        0,
    )
    .unwrap();
}

#[test]
fn a_view_holds_off_ops_in_place() {
    let device = device();
    let stream = stream(&device);
    let x = ramp(&device, &[4]);
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let view = StorageView::of(&x);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| x.zero_set().unwrap());
        copy(&stream, cover(4), &view, &mut out, 4).unwrap();
        stream.synchronize().unwrap();
        assert!(!other.is_finished());
        drop(view);
        other.join().unwrap();
    });
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0, 1.0, 2.0, 3.0]);
}
