//! Is each array that cudarc lends taken as it is, and are unfit ones refused before anything runs?

use std::{rc::Rc, sync::Arc};

use gridcall::{
    ArgumentError, AsDeviceView, AsDeviceViewMut, Buffer, Cast, DType, Float3, Float4, KernelArg,
    LaunchErrorKind, Order, Shaped, Tensor, cover,
    cudarc::driver::{CudaSlice, CudaView, UnifiedSlice},
    kernel,
};

use crate::{
    kernels::{copy, copy4, fill, relu, saxpy},
    support::{Device, ramp},
};

#[kernel(ptx = "../kernels/vector.ptx", cuda = "../kernels/vector.cu")]
unsafe extern "C" {
    #[name("copy4")]
    #[requires(x.len() >= n4, y.len() >= n4)]
    safe fn copy_vectors(x: &[Float4], y: &mut [Float4], n4: i32);
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Ball {
    id: i32,
    pos: Float4,
}

#[kernel(ptx = "../kernels/structs.ptx", cuda = "../kernels/structs.cu")]
unsafe extern "C" {
    #[requires(v.len() >= n)]
    safe fn step(b: Ball, v: &mut [Float3], g: Float3, n: i32);

    #[name("step")]
    #[requires(v.len() >= n)]
    safe fn step_arrays(b: Ball, v: &mut [[f32; 3]], g: [f32; 3], n: i32);
}

/// Managed memory for `len` floats, filled by the host.
fn unified(device: &Device, values: &[f32]) -> UnifiedSlice<f32> {
    // SAFETY: it is written before it is read.
    let array = unsafe { device.alloc_unified::<f32>(values.len(), true) };
    let mut array = array.unwrap();
    array.as_mut_slice().unwrap().copy_from_slice(values);
    array
}

#[test]
fn slices_by_every_kind_of_pointer() {
    let device = device!();
    let stream = device.default_stream();
    let mut x = stream.clone_htod(&ramp(64)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(64).unwrap();
    let mut check = |x: &dyn AsDeviceView<f32>| {
        copy(&stream, cover(64), x, &mut out, 64).unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(64));
        stream.memset_zeros(&mut out).unwrap();
    };
    check(&x);
    check(&&x);
    check(&&mut x);
    check(&x.as_view());
    check(&x.as_view_mut());
    let boxed = Box::new(x);
    check(&boxed);
    let shared = Arc::new(*boxed);
    check(&shared);
    check(&&&shared);
    let counted = Rc::new(Arc::into_inner(shared).unwrap());
    check(&counted);
}

#[test]
fn writable_slices_by_every_kind_of_pointer() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    fill(&stream, cover(8), &mut y, 1.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 8]);
    fill(&stream, cover(8), &mut &mut y, 2.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 8]);
    fill(&stream, cover(8), &mut y.as_view_mut(), 3.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0; 8]);
    let mut boxed = Box::new(y);
    fill(&stream, cover(8), &mut boxed, 4.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&*boxed).unwrap(), [4.0; 8]);
    let mut erased: Box<dyn AsDeviceViewMut<f32>> = boxed;
    fill(&stream, cover(8), &mut erased, 5.0, 8).unwrap();
    fill(&stream, cover(8), &mut *erased, 6.0, 8).unwrap();
}

#[test]
fn arrays_of_different_types_side_by_side() {
    let device = device!();
    let stream = device.default_stream();
    let slice = stream.clone_htod(&ramp(16)).unwrap();
    let unified = unified(&device, &ramp(16));
    let inputs: [Box<dyn AsDeviceView<f32> + '_>; 3] = [
        Box::new(slice.slice(..)),
        Box::new(&slice),
        Box::new(unified),
    ];
    let mut sum = stream.alloc_zeros::<f32>(16).unwrap();
    for input in &inputs {
        saxpy(&stream, cover(16), 16, 1.0, input, &mut sum).unwrap();
        saxpy(&stream, cover(16), 16, 1.0, &**input, &mut sum).unwrap();
    }
    let expected: Vec<f32> = ramp(16).iter().map(|x| 6.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&sum).unwrap(), expected);
}

#[test]
fn a_view_begins_where_it_begins_and_ends_where_it_ends() {
    let device = device!();
    let stream = device.default_stream();
    let buffer = stream.clone_htod(&ramp(18)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(18).unwrap();
    let view = buffer.slice(6..15);
    copy(&stream, cover(9), &view, &mut out.slice_mut(1..10), 9).unwrap();
    let mut expected = [0.0; 18];
    expected[1..10].copy_from_slice(&ramp(18)[6..15]);
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);

    // The contract sees 9 elements, not the 18 of the buffer.
    let error = copy(&stream, cover(10), &view, &mut out, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy`: the launch needs `input.len() >= n`, but input.len() is 9 and n is 10"
    );
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn a_view_of_a_view_adds_its_offset() {
    let device = device!();
    let stream = device.default_stream();
    let buffer = stream.clone_htod(&ramp(32)).unwrap();
    let outer: CudaView<'_, f32> = buffer.slice(8..24);
    let inner = outer.slice(4..);
    let mut out = stream.alloc_zeros::<f32>(12).unwrap();
    copy(&stream, cover(12), &inner, &mut out, 12).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(32)[12..24]);
}

#[test]
fn two_halves_of_one_buffer() {
    let device = device!();
    let stream = device.default_stream();
    let mut buffer = stream.clone_htod(&ramp(64)).unwrap();
    let (from, mut to) = buffer.split_at_mut(32);
    copy(&stream, cover(32), &from, &mut to, 32).unwrap();
    let mut expected = ramp(64);
    expected.copy_within(..32, 32);
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), expected);

    let (left, right) = buffer.split_at(32);
    let mut out = stream.alloc_zeros::<f32>(32).unwrap();
    saxpy(&stream, cover(32), 32, 1.0, &left, &mut out).unwrap();
    saxpy(&stream, cover(32), 32, -1.0, &right, &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0; 32]);
}

#[test]
fn managed_memory_and_its_views() {
    let device = device!();
    let stream = device.default_stream();
    let x = unified(&device, &ramp(32));
    let mut y = unified(&device, &[0.0; 32]);
    copy(&stream, cover(32), &x, &mut y, 32).unwrap();
    assert_eq!(y.as_slice().unwrap(), ramp(32));

    copy(
        &stream,
        cover(8),
        &x.slice(8..16),
        &mut y.slice_mut(24..),
        8,
    )
    .unwrap();
    fill(&stream, cover(4), &mut y.as_view_mut(), -1.0, 4).unwrap();
    let mut expected = ramp(32);
    expected.copy_within(8..16, 24);
    expected[..4].fill(-1.0);
    assert_eq!(y.as_slice().unwrap(), expected);

    let (left, mut right) = y.split_at_mut(16);
    copy(&stream, cover(16), &left, &mut right, 16).unwrap();
    expected.copy_within(..16, 16);
    assert_eq!(y.as_slice().unwrap(), expected);
}

#[test]
fn managed_memory_beside_device_memory() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = unified(&device, &ramp(32));
    let mut y = stream.alloc_zeros::<f32>(32).unwrap();
    saxpy(&stream, cover(32), 32, 2.0, &x.as_view(), &mut y).unwrap();
    let expected: Vec<f32> = ramp(32).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_view_that_is_not_aligned_enough_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(32)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(32).unwrap();

    let error = copy4(&stream, cover(4), &x.slice(1..17), &mut y, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy4`: argument `x` (parameter 0, &[f32]): the array begins at an address that is \
         aligned to 4 bytes only, the kernel needs 16; views that begin inside a buffer must begin \
         at a multiple of that"
    );
    let error = copy4(&stream, cover(4), &x, &mut y.slice_mut(2..), 4).unwrap_err();
    let LaunchErrorKind::Argument { index, error, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*index, 1);
    assert!(
        matches!(
            error,
            ArgumentError::Misaligned {
                found: 8,
                needed: 16
            }
        ),
        "{error}"
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 32]);

    copy4(
        &stream,
        cover(4),
        &x.slice(4..20),
        &mut y.slice_mut(8..24),
        4,
    )
    .unwrap();
    let mut expected = [0.0; 32];
    expected[8..24].copy_from_slice(&ramp(32)[4..20]);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn floats_are_vectors_where_that_is_said() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(21)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    let part = x.slice(4..20);
    copy_vectors(
        &stream,
        cover(4),
        &Cast::new(&part),
        &mut Cast::new(&mut y),
        4,
    )
    .unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), ramp(20)[4..]);
    // What a contract sees are vectors.
    let mut refuse = |x: &CudaView<'_, f32>, n4, text: &str| {
        let launch = copy_vectors(
            &stream,
            cover(n4),
            &Cast::new(x),
            &mut Cast::new(&mut y),
            n4,
        );
        assert_eq!(
            launch.unwrap_err().to_string(),
            format!("kernel `copy_vectors`: {text}")
        );
    };
    refuse(
        &part,
        5,
        "the launch needs `x.len() >= n4`, but x.len() is 4 and n4 is 5",
    );
    refuse(
        &x.slice(1..17),
        4,
        "argument `x` (parameter 0, &[Float4]): the array begins at an address that is aligned to 4 \
         bytes only, the kernel needs 16; views that begin inside a buffer must begin at a multiple \
         of that",
    );
    refuse(
        &x.slice(4..21),
        4,
        "argument `x` (parameter 0, &[Float4]): its 17 elements of `f32` (4 bytes each) are no whole \
         number of `gridcall::vector::Float4` (16 bytes); pass a part that is",
    );
    let columns = Shaped::strided(&x, 0, [4, 4], [1, 4]);
    let launch = copy_vectors(
        &stream,
        cover(4),
        &Cast::new(&columns),
        &mut Cast::new(&mut y),
        4,
    );
    let error = launch.unwrap_err().to_string();
    assert!(
        error
            .contains("an array that is not contiguous cannot be seen as elements of another type"),
        "{error}"
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), ramp(20)[4..]);
}

#[test]
fn whatever_an_array_says_of_itself_a_cast_of_it_says() {
    let device = device!();
    let stream = device.default_stream();
    let buffer = Buffer::from_slice(&stream, &ramp(16)).unwrap();
    let mut y = Buffer::<[f32; 2]>::zeroed(&stream, 8).unwrap();
    copy_vectors(
        &stream,
        cover(4),
        &Cast::new(&buffer),
        &mut Cast::new(&mut y),
        4,
    )
    .unwrap();
    assert_eq!(y.to_vec().unwrap().as_flattened(), ramp(16));

    // Overlap is looked for, and an element type is asked for, behind it.
    let address = buffer.describe().unwrap().pointer();
    let place = buffer.describe().unwrap().place();
    let tensor = || {
        // SAFETY: the floats outlive it, and all is on one stream.
        unsafe {
            Tensor::from_parts(
                address,
                DType::F32,
                &[16],
                None,
                place,
                Order::Settled,
                Box::new(()),
            )
        }
        .unwrap()
    };
    let launch = |cast: &dyn AsDeviceView<Float4>| {
        let mut out = Cast::<_, f32>::new(tensor());
        copy_vectors(&stream, cover(4), cast, &mut out, 4)
            .unwrap_err()
            .to_string()
    };
    let error = launch(&Cast::<_, f32>::new(tensor()));
    assert!(error.contains("overlaps argument `x`"), "{error}");
    let error = launch(&Cast::<_, f64>::new(tensor()));
    assert!(
        error.contains("expected elements of f64, the array holds f32"),
        "{error}"
    );
}

#[test]
fn three_floats_are_a_vector_of_three() {
    let device = device!();
    let stream = device.default_stream();
    let b = Ball {
        id: 2,
        pos: Float4::new(1.0, 2.0, 3.0, 0.5),
    };
    let mut v = stream.clone_htod(&[[0.0_f32; 3]; 5]).unwrap();
    step_arrays(&stream, cover(5), b, &mut v, [10.0, 20.0, 30.0], 5).unwrap();
    let (moved, rest) = ([6.0, 12.0, 18.0], [0.0; 3]);
    let once = [moved, moved, rest, moved, moved];
    assert_eq!(stream.clone_dtoh(&v).unwrap(), once);
    let g = Float3::new(10.0, 20.0, 30.0);
    step(&stream, cover(5), b, &mut Cast::new(&mut v), g, 5).unwrap();
    let seen = stream.clone_dtoh(&v).unwrap();
    assert_ne!(seen, once);
    let mut flat = stream.clone_htod(once.as_flattened()).unwrap();
    step(&stream, cover(5), b, &mut Cast::new(&mut flat), g, 5).unwrap();
    assert_eq!(stream.clone_dtoh(&flat).unwrap(), seen.as_flattened());
}

#[test]
fn an_array_of_nothing_is_an_array() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(0).unwrap();
    relu(&stream, cover(y.len()), &mut y, 0).unwrap();
    let empty: CudaSlice<f32> = stream.null().unwrap();
    copy(&stream, cover(empty.len()), &empty, &mut y, 0).unwrap();
    // The kernel runs, and finds nothing to do.
    copy(&stream, cover(1), &empty, &mut y, 0).unwrap();
    let error = copy(&stream, cover(1), &empty, &mut y, 1).unwrap_err();
    assert!(
        error.to_string().ends_with("input.len() is 0 and n is 1"),
        "{error}"
    );
    stream.synchronize().unwrap();
}

#[test]
fn arguments_are_only_borrowed_for_the_call() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(16)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    let y = &mut y;
    for _ in 0..3 {
        // A reference is borrowed again at each turn, not moved.
        saxpy(&stream, cover(16), 16, 1.0, &x, y).unwrap();
    }
    let expected: Vec<f32> = ramp(16).iter().map(|x| 3.0 * x).collect();
    assert_eq!(stream.clone_dtoh(y).unwrap(), expected);
}
