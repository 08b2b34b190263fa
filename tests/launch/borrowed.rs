//! Arrays vouched for by their address: wrong places and overlaps are refused before anything runs.

use gridcall::{
    ArgumentError, AsDeviceView, BorrowedView, BorrowedViewMut, LaunchErrorKind, Place, cover,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr},
    kernel,
};

use crate::{
    kernels::{add_f64, copy, many10, saxpy},
    support::ramp,
};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y, each thread its own element, so that x may be y.
    #[name("saxpy")]
    #[requires(x.len() >= n, y.len() >= n)]
    #[may_alias(x, y)]
    safe fn saxpy_in_place(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

/// `len` floats of the array from element `start` on.
fn read<T>(
    array: &CudaSlice<T>,
    start: usize,
    len: usize,
    stream: &CudaStream,
) -> BorrowedView<'static, T> {
    assert!(start + len <= array.len());
    let address = array.device_ptr(stream).0 + (start * size_of::<T>()) as u64;
    // SAFETY: the elements lie within the array, which each test keeps to its end, and all work on
    // it is on one stream.
    unsafe { BorrowedView::new(address, len, Place::Device(0)) }
}

fn write<T>(
    array: &CudaSlice<T>,
    start: usize,
    len: usize,
    stream: &CudaStream,
) -> BorrowedViewMut<'static, T> {
    assert!(start + len <= array.len());
    let address = array.device_ptr(stream).0 + (start * size_of::<T>()) as u64;
    // SAFETY: as for `read`; where a test makes others of the same elements, the launch refuses
    // them or its kernel allows them.
    unsafe { BorrowedViewMut::new(address, len, Place::Device(0)) }
}

/// The parameter, and what is wrong with its argument.
fn refused(result: Result<(), gridcall::LaunchError>) -> (usize, String) {
    let error = result.expect_err("the launch must be refused");
    match error.kind() {
        LaunchErrorKind::Argument { index, error, .. } => (*index, error.to_string()),
        _ => panic!("{error}"),
    }
}

#[test]
fn borrowed_views_are_arrays() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(32)).unwrap();
    let y = stream.alloc_zeros::<f32>(32).unwrap();
    let view = read(&x, 8, 16, &stream);
    let copied = view;
    assert_eq!(copied.describe().unwrap().len(), 16);
    saxpy(
        &stream,
        cover(16),
        16,
        2.0,
        &copied,
        &mut write(&y, 0, 16, &stream),
    )
    .unwrap();
    let mut expected = [0.0; 32];
    for (y, x) in expected[..16].iter_mut().zip(&ramp(32)[8..]) {
        *y = 2.0 * x;
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn arrays_of_another_place_are_refused() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(8)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    let address = x.device_ptr(&stream).0;
    let at = |place| {
        // SAFETY: the launch refuses the place, or it is right; all work is on one stream.
        unsafe { BorrowedView::<f32>::new(address, 8, place) }
    };
    let context = device.cu_ctx().cast::<std::ffi::c_void>();

    let elsewhere = at(Place::Device(7));
    assert_eq!(
        refused(saxpy(&stream, cover(8), 8, 1.0, &elsewhere, &mut y)),
        (
            2,
            "the array is on device 7, the stream is on device 0; launch on a stream of device 7, or copy the array".to_owned()
        )
    );
    let other = at(Place::Context {
        context: context.wrapping_byte_add(16),
        device: 0,
    });
    assert_eq!(
        refused(saxpy(&stream, cover(8), 8, 1.0, &other, &mut y)),
        (
            2,
            "the array belongs to another context of device 0 than the stream; launch on a stream of the array's context, or copy the array".to_owned()
        )
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 8]);

    for place in [
        Place::Device(0),
        Place::Context { context, device: 0 },
        Place::Everywhere,
    ] {
        saxpy(&stream, cover(8), 8, 1.0, &at(place), &mut y).unwrap();
    }
    let expected: Vec<f32> = ramp(8).iter().map(|x| 3.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_written_array_must_not_overlap_another() {
    let device = device!();
    let stream = device.default_stream();
    let mut buffer = stream.clone_htod(&ramp(32)).unwrap();
    let overlap = "the array overlaps argument `input` (parameter 0), and the kernel writes to one \
                   of them; pass separate arrays, or declare #[may_alias(..)] if the kernel allows it";

    // Both borrowed: the same, shifted by one, one within the other.
    for (from, to) in [
        ((0, 16), (0, 16)),
        ((0, 16), (15, 16)),
        ((4, 4), (0, 32)),
        ((15, 2), (0, 16)),
    ] {
        let input = read(&buffer, from.0, from.1, &stream);
        let mut out = write(&buffer, to.0, to.1, &stream);
        assert_eq!(
            refused(copy(&stream, cover(2), &input, &mut out, 2)),
            (1, overlap.to_owned()),
            "{from:?} and {to:?}"
        );
    }
    // One borrowed, one that Rust's borrow rules guard.
    let input = read(&buffer, 0, 16, &stream);
    let (index, _) = refused(copy(&stream, cover(2), &input, &mut buffer, 2));
    assert_eq!(index, 1);
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), ramp(32));

    // Side by side is not overlap, nor is what has no elements.
    let input = read(&buffer, 0, 16, &stream);
    copy(
        &stream,
        cover(16),
        &input,
        &mut write(&buffer, 16, 16, &stream),
        16,
    )
    .unwrap();
    let nothing = read(&buffer, 20, 0, &stream);
    copy(
        &stream,
        cover(1),
        &nothing,
        &mut write(&buffer, 16, 16, &stream),
        0,
    )
    .unwrap();
    let mut expected = ramp(32);
    expected.copy_within(..16, 16);
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), expected);
}

#[test]
fn a_written_array_must_not_overlap_one_of_many() {
    let device = device!();
    let stream = device.default_stream();
    let buffer = stream.clone_htod(&ramp(80)).unwrap();
    // The last one is written; which of the others begins within it, if any does. Those that are
    // read all share elements.
    let launch = |overlapping: Option<usize>| {
        let input = |k: usize| {
            let start = if overlapping == Some(k) { 71 } else { k };
            read(&buffer, start, 8, &stream)
        };
        let mut y = write(&buffer, 72, 8, &stream);
        many10(
            &stream,
            cover(8),
            &input(0),
            &input(1),
            &input(2),
            &input(3),
            &input(4),
            &input(5),
            &input(6),
            &mut y,
            1.0,
            8,
        )
    };
    for (k, name) in ["a", "b", "c", "d", "e", "f", "g"].iter().enumerate() {
        let (index, message) = refused(launch(Some(k)));
        assert_eq!(index, 7);
        let told = format!("the array overlaps argument `{name}` (parameter {k})");
        assert!(message.starts_with(&told), "{message}");
    }
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), ramp(80));
    launch(None).unwrap();
    assert_ne!(stream.clone_dtoh(&buffer).unwrap(), ramp(80));
}

#[test]
fn arrays_that_are_only_read_may_overlap() {
    let device = device!();
    let stream = device.default_stream();
    let values: Vec<f64> = (0..16_u8).map(f64::from).collect();
    let x = stream.clone_htod(&values).unwrap();
    let mut out = stream.alloc_zeros::<f64>(8).unwrap();
    let (a, b) = (read(&x, 0, 12, &stream), read(&x, 4, 12, &stream));
    add_f64(&stream, cover(8), &a, &b, &mut out, 8).unwrap();
    let expected: Vec<f64> = values[..8].iter().map(|v| v + (v + 4.0)).collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn overlap_is_allowed_where_the_kernel_allows_it() {
    let device = device!();
    let stream = device.default_stream();
    let y = stream.clone_htod(&ramp(16)).unwrap();
    let (x, mut out) = (read(&y, 0, 16, &stream), write(&y, 0, 16, &stream));
    saxpy_in_place(&stream, cover(16), 16, 2.0, &x, &mut out).unwrap();
    let expected: Vec<f32> = ramp(16).iter().map(|y| 3.0 * y).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    // The same two are refused by the declaration that does not say so.
    let error = saxpy(&stream, cover(16), 16, 2.0, &x, &mut out).unwrap_err();
    let LaunchErrorKind::Argument { error, .. } = error.kind() else {
        panic!("{error}");
    };
    assert!(
        matches!(
            error,
            ArgumentError::Overlap {
                other: "x",
                other_index: 2,
                ..
            }
        ),
        "{error}"
    );
}
