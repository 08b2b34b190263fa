//! Is a tensor of another library what it seems, and if not, does the launch say so?

use std::thread;

use gridcall::{
    BorrowedTensor, Buffer, Cast, Order, Pinned, Tensor, TypedTensor, cover,
    cudarc::driver::{DevicePtr, sys},
    dlpack::dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLTensor},
};

use crate::{
    kernels::{all_eq, copy, copy4, gather, rowsum, saxpy, scale, slow_add},
    made::{Export, Released, on},
    support::{LONG, ramp},
};

#[test]
fn a_tensor_is_an_argument_in_place_and_out_of_place() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(6)).unwrap();
    let y = stream.clone_htod(&[1.0_f32; 6]).unwrap();
    let x = Export::f32(&[2, 3]).tensor(x, on(&stream)).unwrap();
    let mut y = Export::f32(&[6]).tensor(y, on(&stream)).unwrap();
    saxpy(&stream, cover(6), 6, 2.0, &x, &mut y).unwrap();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    copy(&stream, cover(6), &y, &mut out, 6).unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    );
}

#[test]
fn a_typed_tensor_is_an_argument_of_its_type() {
    let device = device!();
    let stream = device.default_stream();
    let y = stream.clone_htod(&ramp(4)).unwrap();
    let tensor = Tensor::from_slice(y, &[2, 2]).unwrap();
    let mut y: TypedTensor<f32, 2> = tensor.typed().unwrap();
    scale(&stream, cover(4), &mut y, 3.0, 4).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    copy(&stream, cover(4), &y, &mut out, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0, 3.0, 6.0, 9.0]);
}

#[test]
fn an_offset_view_begins_where_it_begins_and_is_as_long() {
    let device = device!();
    let stream = device.default_stream();
    let memory = stream.clone_htod(&ramp(18)).unwrap();
    let rows = Export::f32(&[3, 3]).strides(&[3, 1]).byte_offset(24);
    let rows = rows.tensor(memory, on(&stream)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(18).unwrap();
    copy(&stream, cover(9), &rows, &mut out, 9).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap()[..9], ramp(15)[6..]);
    let error = copy(&stream, cover(10), &rows, &mut out, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy`: the launch needs `input.len() >= n`, but input.len() is 9 and n is 10"
    );
}

#[test]
fn another_element_type_is_told_with_both_names() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(4)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    for (dtype, name) in [(DLDataType::I64, "i64"), (DLDataType::U32, "u32")] {
        let idx = stream.clone_htod(&[0_i64; 4]).unwrap();
        let idx = Export::f32(&[4])
            .dtype(dtype)
            .tensor(idx, on(&stream))
            .unwrap();
        // SAFETY: nothing is launched.
        let error = unsafe { gather(&stream, cover(4), &x, &idx, &mut out, 4) }.unwrap_err();
        let error = error.to_string();
        let expected = format!(
            "kernel `gather`: argument `idx` (parameter 1, &[i32]): expected elements of i32, the array holds {name}; convert it where it was made"
        );
        assert!(error.starts_with(&expected), "{error}");
    }
    // The same bits by an explicit word only.
    let memory = stream.clone_htod(&[3_u32, 2, 1, 0]).unwrap();
    let idx = Export::f32(&[4]).dtype(DLDataType::U32);
    let idx = idx.tensor(memory, on(&stream)).unwrap();
    let idx = idx.reinterpret(gridcall::DType::I32).unwrap();
    // SAFETY: the indices are within x.
    unsafe { gather(&stream, cover(4), &x, &idx, &mut out, 4) }.unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn strides_are_told_or_do_not_matter() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let memory = || stream.clone_htod(&ramp(10)).unwrap();
    let sliced = Export::f32(&[2, 4])
        .strides(&[5, 1])
        .tensor(memory(), on(&stream))
        .unwrap();
    let error = rowsum(&stream, cover(2), &sliced, &mut out, 2, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `rowsum`: argument `x` (parameter 0, &[f32]): the array is not contiguous: shape [2, 4], strides [5, 1] in elements; make it contiguous first, or declare the parameter `Strided<T, N>`"
    );
    let odd = Export::f32(&[1, 2, 1, 4]).strides(&[77, 4, -3, 1]);
    let odd = odd.tensor(memory(), on(&stream)).unwrap();
    rowsum(&stream, cover(2), &odd, &mut out, 2, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap()[..2], [6.0, 22.0]);
}

#[test]
fn alignment_is_told_before_anything_runs() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    let memory = || stream.clone_htod(&ramp(20)).unwrap();
    let shifted = Export::f32(&[16])
        .byte_offset(4)
        .tensor(memory(), on(&stream))
        .unwrap();
    let error = copy4(&stream, cover(4), &shifted, &mut y, 4)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("aligned to 4 bytes only, the kernel needs 16"),
        "{error}"
    );
    let shifted = Export::f32(&[16])
        .byte_offset(16)
        .tensor(memory(), on(&stream))
        .unwrap();
    copy4(&stream, cover(4), &shifted, &mut y, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), ramp(20)[4..]);
}

#[test]
fn a_tensor_of_another_device_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let memory = || stream.clone_htod(&ramp(4)).unwrap();
    let mut y = Export::f32(&[4]).on(DLDeviceType::CUDA, 1);
    y.strides = Some(vec![1]);
    let mut y = y.tensor(memory(), on(&stream)).unwrap();
    let error = scale(&stream, cover(4), &mut y, 2.0, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `scale`: argument `y` (parameter 0, &mut [f32]): the array is on device 1, the stream is on device 0; \
         launch on a stream of device 1, or copy the array"
    );
    // It was never used, whatever device it says.
    drop(y);
    let error = Export::f32(&[4])
        .on(DLDeviceType::CPU, 0)
        .tensor(memory(), on(&stream));
    assert!(error.unwrap_err().to_string().contains("in host memory"));
    // What is said to be everywhere is not asked.
    let everywhere = Export::f32(&[4]).on(DLDeviceType::CUDAMANAGED, 0);
    let mut y = everywhere.tensor(memory(), on(&stream)).unwrap();
    scale(&stream, cover(4), &mut y, 2.0, 4).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_tensor_of_bools_is_one_of_bytes_that_are_0_or_1() {
    let device = device!();
    let stream = device.default_stream();
    let a = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let b = stream.clone_htod(&[1.0_f32, 0.0, 3.0, 0.0]).unwrap();
    let bools = |dtype| {
        let memory = stream.clone_htod(&[7_u8; 4]).unwrap();
        let tensor = Export::f32(&[4]).dtype(dtype);
        tensor.tensor(memory, on(&stream)).unwrap()
    };
    let mut out = bools(DLDataType::BOOL);
    all_eq(&stream, cover(4), &a, &b, 4, false, &mut out).unwrap();
    // Their bytes, which no kernel for bools will take.
    let bytes = out.reinterpret(gridcall::DType::U8).unwrap();
    let mut copied = [0_u8; 4];
    // SAFETY: four bytes, which the kernel wrote before on the stream.
    unsafe {
        gridcall::cudarc::driver::result::memcpy_dtoh_async(
            &mut copied,
            bytes.pointer(),
            stream.cu_stream(),
        )
    }
    .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(copied, [1, 0, 1, 0]);
    for (dtype, name) in [(DLDataType::U8, "u8"), (DLDataType::I8, "i8")] {
        let error = all_eq(&stream, cover(4), &a, &b, 4, false, &mut bools(dtype)).unwrap_err();
        let expected = format!(
            "kernel `all_eq`: argument `out` (parameter 4, &mut [bool]): expected elements of bool, the array holds {name}; convert it where it was made; elements are never converted here"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn pinned_and_managed_memory_is_reached_by_every_device() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let mut pinned = Pinned::<f32>::zeroed(&device, 4).unwrap();
    pinned.copy_from_slice(&ramp(4));
    // SAFETY: the elements are written before they are used.
    let mut managed = unsafe { device.alloc_unified::<f32>(4, true) }.unwrap();
    managed.as_mut_slice().unwrap().copy_from_slice(&ramp(4));
    let managed = managed.device_ptr(&stream).0;
    for (kind, address) in [
        (DLDeviceType::CUDAHOST, pinned.as_ptr() as u64),
        (DLDeviceType::CUDAMANAGED, managed),
    ] {
        let mut shape = [4_i64];
        let given = given(address, kind, &mut shape);
        // SAFETY: the memory outlives it, and the host is done with it.
        let mut borrowed = unsafe { BorrowedTensor::new(&given, Order::Settled) }.unwrap();
        scale(&stream, cover(4), &mut borrowed, 2.0, 4).unwrap();
        copy(&stream, cover(4), &borrowed, &mut out, 4).unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0, 2.0, 4.0, 6.0]);
    }
}

#[test]
fn a_read_only_tensor_is_read_and_not_written() {
    let device = device!();
    let stream = device.default_stream();
    let memory = stream.clone_htod(&ramp(4)).unwrap();
    let mut x = Export::f32(&[4])
        .read_only()
        .tensor(memory, on(&stream))
        .unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    copy(&stream, cover(4), &x, &mut out, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(4));
    let mut seen = Cast::<_, f32>::new(&mut x);
    let refused = scale(&stream, cover(4), &mut seen, 2.0, 4);
    for refused in [refused, scale(&stream, cover(4), &mut x, 2.0, 4)] {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "kernel `scale`: argument `y` (parameter 0, &mut [f32]): the kernel writes to it, but its owner lends it read-only; pass a writable copy"
        );
    }
}

#[test]
fn a_tensor_without_elements_is_an_argument() {
    let device = device!();
    let stream = device.default_stream();
    let memory = stream.alloc_zeros::<f32>(1).unwrap();
    let x = Export::f32(&[0, 7]).tensor(memory, on(&stream)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(1).unwrap();
    copy(&stream, cover(0), &x, &mut out, 0).unwrap();
}

#[test]
fn overlapping_tensors_are_told() {
    let device = device!();
    let stream = device.default_stream();
    let memory = stream.clone_htod(&ramp(8)).unwrap();
    let whole = Tensor::from_slice(memory, &[8]).unwrap();
    let place = whole.place();
    let part = |first: u64| {
        // SAFETY: four of the eight floats, which outlive this; all is on one stream.
        unsafe {
            Tensor::from_parts(
                whole.pointer() + 4 * first,
                gridcall::DType::F32,
                &[4],
                None,
                place,
                on(&stream),
                Box::new(()),
            )
        }
        .unwrap()
    };
    let error = copy(&stream, cover(4), &part(1), &mut part(4), 4)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(
            "argument `out` (parameter 1, &mut [f32]): the array overlaps argument `input`"
        ),
        "{error}"
    );
    copy(&stream, cover(4), &part(0), &mut part(4), 4).unwrap();
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    copy(&stream, cover(8), &whole, &mut out, 8).unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]
    );
}

#[test]
fn a_borrowed_tensor_is_an_argument() {
    let device = device!();
    let stream = device.default_stream();
    let y = Tensor::from_slice(stream.clone_htod(&ramp(4)).unwrap(), &[4]).unwrap();
    let mut shape = [4_i64];
    let given = given(y.pointer(), DLDeviceType::CUDA, &mut shape);
    // SAFETY: `y` outlives it, and all is on one stream.
    let mut borrowed = unsafe { BorrowedTensor::new(&given, Order::Settled) }.unwrap();
    scale(&stream, cover(4), &mut borrowed, 2.0, 4).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    copy(&stream, cover(4), &y, &mut out, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0, 2.0, 4.0, 6.0]);
}

#[test]
fn a_tensor_is_handed_on_and_comes_back() {
    let device = device!();
    let stream = device.default_stream();
    let memory = stream.clone_htod(&ramp(6)).unwrap();
    let exported = Tensor::from_slice(memory, &[2, 3]).unwrap();
    let exported = exported.into_dlpack(Some((&*stream).into())).unwrap();
    // SAFETY: it is ours, and all is on one stream.
    let tensor = unsafe { Tensor::from_dlpack(exported, on(&stream)) }.unwrap();
    assert_eq!(
        (tensor.shape(), tensor.strides()),
        (&[2, 3][..], &[3, 1][..])
    );
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    copy(&stream, cover(6), &tensor, &mut out, 6).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(6));
}

/// The owner's default stream is of whatever context is current; on a fresh thread none is.
#[test]
fn a_tensor_is_handed_on_where_no_context_is_current() {
    let device = device!();
    let (own, consumer) = (device.default_stream(), device.new_stream().unwrap());
    let tensor = Tensor::from_slice(own.clone_htod(&ramp(6)).unwrap(), &[6]).unwrap();
    let exported = thread::scope(|scope| {
        let export = || tensor.into_dlpack(Some((&*consumer).into())).unwrap();
        scope.spawn(export).join().unwrap()
    });
    // SAFETY: it is ours, and the consumer's stream waits for its owner's.
    let tensor = unsafe { Tensor::from_dlpack(exported, on(&consumer)) }.unwrap();
    let mut out = consumer.alloc_zeros::<f32>(6).unwrap();
    copy(&consumer, cover(6), &tensor, &mut out, 6).unwrap();
    assert_eq!(consumer.clone_dtoh(&out).unwrap(), ramp(6));
}

#[test]
fn refused_launches_leave_nothing_behind() {
    let device = device!();
    let stream = device.default_stream();
    let released = Released::default();
    let memory = stream.clone_htod(&ramp(4)).unwrap();
    let x = Export::f32(&[4])
        .released_by(memory, on(&stream), &released)
        .unwrap();
    let mut out = stream.alloc_zeros::<f32>(2).unwrap();
    assert!(copy(&stream, cover(4), &x, &mut out, 4).is_err());
    // It was not used, so that nothing is waited for.
    drop(x);
    assert_eq!(released.count(), 1);
}

/// Contiguous floats, as a C function would be handed them.
fn given(address: u64, device_type: DLDeviceType, shape: &mut [i64]) -> DLTensor {
    DLTensor {
        data: std::ptr::without_provenance_mut(usize::try_from(address).unwrap()),
        device: DLDevice {
            device_type,
            device_id: 0,
        },
        ndim: i32::try_from(shape.len()).unwrap(),
        dtype: DLDataType::F32,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    }
}

#[test]
fn a_buffer_is_handed_on_whatever_context_is_current() {
    let device = device!();
    let (ours, theirs) = (device.default_stream(), device.new_stream().unwrap());
    let mut buffer = Buffer::from_slice(&ours, &ramp(256)).unwrap();
    slow_add(&theirs, (1, 256), &mut buffer, 1.0, LONG).unwrap();
    // SAFETY: every call that needs a context makes its own current.
    unsafe { sys::cuCtxSetCurrent(std::ptr::null_mut()) }
        .result()
        .unwrap();
    let mut tensor = buffer.into_tensor(&[256]).unwrap();
    scale(&ours, cover(256), &mut tensor, 2.0, 256).unwrap();
    let mut out = ours.alloc_zeros::<f32>(256).unwrap();
    copy(&ours, cover(256), &tensor, &mut out, 256).unwrap();
    let expected: Vec<f32> = ramp(256).iter().map(|x| (x + 1.0) * 2.0).collect();
    assert_eq!(ours.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn a_buffer_is_handed_on_when_its_uses_are_done() {
    let device = device!();
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut buffer = Buffer::from_slice(&ours, &ramp(256)).unwrap();
    slow_add(&theirs, (1, 256), &mut buffer, 1.0, LONG).unwrap();
    let error = Buffer::from_slice(&ours, &ramp(4))
        .unwrap()
        .into_tensor(&[3]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "shape [3] does not fit 4 elements"
    );
    let mut tensor = buffer.into_tensor(&[16, 16]).unwrap();
    scale(&ours, cover(256), &mut tensor, 2.0, 256).unwrap();
    let mut out = theirs.alloc_zeros::<f32>(256).unwrap();
    copy(&theirs, cover(256), &tensor, &mut out, 256).unwrap();
    drop(tensor);
    let expected: Vec<f32> = ramp(256).iter().map(|x| (x + 1.0) * 2.0).collect();
    assert_eq!(theirs.clone_dtoh(&out).unwrap(), expected);
}
