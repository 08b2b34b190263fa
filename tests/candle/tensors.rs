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
    let mut launch = |x: &Tensor, idx: &StorageView| {
        // SAFETY: the indices are within x.
        unsafe { gather(&stream, cover(4), &StorageView::of(x), idx, &mut out, 4) }
    };
    assert_eq!(
        launch(&x, &StorageView::of(&idx)).unwrap_err().to_string(),
        "kernel `gather`: argument `idx` (parameter 1, &[i32]): expected elements of i32, the array holds DType::U32; convert it on the host first: `.to_device(&Device::Cpu)?.to_dtype(DType::I32)?`, or, if the bits are meant, use `StorageView::reinterpret`"
    );
    let meant = StorageView::of(&idx).reinterpret(gridcall::DType::I32);
    let meant = meant.unwrap();
    let doubles = x.to_dtype(DType::F64).unwrap();
    assert_eq!(
        launch(&doubles, &meant).unwrap_err().to_string(),
        "kernel `gather`: argument `x` (parameter 0, &[f32]): expected elements of f32, the array holds DType::F64; convert it first: `.to_dtype(DType::F32)?`"
    );
    launch(&doubles.to_dtype(DType::F32).unwrap(), &meant).unwrap();
    drop(meant);
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [3.0, 2.0, 1.0, 0.0]);
    let converted = idx.to_device(&Device::Cpu).unwrap();
    let converted = converted.to_dtype(DType::I32).unwrap();
    let converted = converted.to_device(&device).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let (x, idx) = (StorageView::of(&x), StorageView::of(&converted));
    // SAFETY: the indices are within x.
    unsafe { gather(&stream, cover(4), &x, &idx, &mut out, 4) }.unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn bits_are_taken_for_others_by_request_and_of_one_size() {
    let x = ramp(&device(), &[4]);
    let error = StorageView::of(&x).reinterpret(gridcall::DType::F64);
    assert_eq!(
        error.unwrap_err().to_string(),
        "elements of f32 have 4 bytes, those of f64 have 8"
    );
    let host = ramp(&Device::Cpu, &[4]);
    let error = StorageView::of(&host).reinterpret(gridcall::DType::I32);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("the tensor is not on a CUDA device")
    );
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
