//! Tensors made by hand, on a driver that only writes down what it is asked for.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers of these tests are small"
)]

use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use dlpark::ffi::{
    DLDataType, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion,
    DLTensor,
};

use super::*;
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, ForeignStream, Layout, Order, Place, StreamRef,
    ViewError, foreign::fake,
};

const OURS: usize = 0x51;
const THEIRS: usize = 0x77;

fn stream(raw: usize) -> StreamRef<'static> {
    let context = ptr::without_provenance_mut(fake::CONTEXT);
    // SAFETY: the driver of these tests never looks at a handle.
    unsafe { StreamRef::from_raw(ptr::without_provenance_mut(raw), context, 0) }
}

fn on(raw: usize) -> Order {
    // SAFETY: as above.
    Order::Stream(unsafe { ForeignStream::from_raw(ptr::without_provenance_mut(raw)) })
}

/// What stands behind a hand-made tensor: its numbers, and how often it was let go.
struct Made {
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    released: AtomicUsize,
}

impl Made {
    fn new(shape: &[i64], strides: Option<&[i64]>) -> &'static Made {
        Box::leak(Box::new(Made {
            shape: shape.to_vec(),
            strides: strides.map(<[i64]>::to_vec),
            released: AtomicUsize::new(0),
        }))
    }

    fn tensor(&self) -> DLTensor {
        DLTensor {
            data: ptr::without_provenance_mut(0x7000),
            device: DLDevice {
                device_type: DLDeviceType::CUDA,
                device_id: 0,
            },
            ndim: self.shape.len() as i32,
            dtype: DLDataType::F32,
            shape: self.shape.as_ptr().cast_mut(),
            strides: self
                .strides
                .as_ref()
                .map_or(ptr::null_mut(), |s| s.as_ptr().cast_mut()),
            byte_offset: 0,
        }
    }

    fn versioned(
        &'static self,
        change: impl FnOnce(&mut DLManagedTensorVersioned),
    ) -> *mut DLManagedTensorVersioned {
        let mut managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: ptr::from_ref(self).cast_mut().cast(),
            deleter: Some(delete),
            flags: dlpark::DlpackFlags::empty(),
            dl_tensor: self.tensor(),
        };
        change(&mut managed);
        Box::into_raw(Box::new(managed))
    }

    fn legacy(&'static self, change: impl FnOnce(&mut DLManagedTensor)) -> *mut DLManagedTensor {
        let mut managed = DLManagedTensor {
            dl_tensor: self.tensor(),
            manager_ctx: ptr::from_ref(self).cast_mut().cast(),
            deleter: Some(delete_legacy),
        };
        change(&mut managed);
        Box::into_raw(Box::new(managed))
    }

    fn import(&'static self, order: Order) -> Tensor {
        // SAFETY: nothing uses the memory that it speaks of.
        unsafe { Tensor::from_dlpack_ptr(self.versioned(|_| {}), order) }.unwrap()
    }

    fn refusal(&'static self, change: impl FnOnce(&mut DLManagedTensorVersioned)) -> String {
        // SAFETY: as above.
        let refused = unsafe { Tensor::from_dlpack_ptr(self.versioned(change), Order::Settled) };
        refused.unwrap_err().to_string()
    }

    fn released(&self) -> usize {
        self.released.load(Ordering::SeqCst)
    }

    /// Waits for another thread to let go.
    fn wait_for_release(&self) {
        let start = Instant::now();
        while self.released() == 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "never let go");
            thread::yield_now();
        }
    }
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `Made::versioned`.
    let managed = unsafe { Box::from_raw(managed) };
    release(managed.manager_ctx);
}

unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    // SAFETY: made by `Made::legacy`.
    let managed = unsafe { Box::from_raw(managed) };
    release(managed.manager_ctx);
}

fn release(made: *mut c_void) {
    // SAFETY: it was leaked.
    let made = unsafe { &*made.cast::<Made>() };
    made.released.fetch_add(1, Ordering::SeqCst);
}

fn describe(tensor: &Tensor) -> crate::View<'_> {
    AsDeviceView::<f32>::describe(tensor).unwrap()
}

fn launch(tensor: &Tensor, raw: usize) -> Result<(), ViewError> {
    AsDeviceView::<f32>::acquire(tensor, stream(raw))?.finish()
}

#[test]
fn both_structs_are_taken_and_let_go_once() {
    let _fake = fake::session();
    let made = Made::new(&[2, 3], Some(&[3, 1]));
    drop(made.import(Order::Settled));
    assert_eq!(made.released(), 1);
    let made = Made::new(&[2, 3], None);
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { Tensor::from_dlpack_ptr(made.legacy(|_| {}), Order::Settled) }.unwrap();
    assert_eq!(
        (tensor.shape(), tensor.strides()),
        (&[2, 3][..], &[3, 1][..])
    );
    assert_eq!(made.released(), 0);
    drop(tensor);
    assert_eq!(made.released(), 1);
}

#[test]
fn a_missing_deleter_is_not_called() {
    let _fake = fake::session();
    let made = Made::new(&[2], None);
    let raw = made.versioned(|managed| managed.deleter = None);
    // SAFETY: nothing uses the memory that it speaks of.
    drop(unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap());
    assert_eq!(made.released(), 0);
    // SAFETY: made by `versioned`, and nobody freed it.
    drop(unsafe { Box::from_raw(raw) });
}

#[test]
fn another_major_version_is_let_go_and_not_read() {
    let made = Made::new(&[2], None);
    let error = made.refusal(|managed| {
        managed.version.major = 2;
        managed.dl_tensor.ndim = 1 << 30;
        managed.dl_tensor.shape = ptr::without_provenance_mut(8);
    });
    assert!(error.contains("not a tensor of DLPack 1"), "{error}");
    assert_eq!(made.released(), 1);
    let null = ptr::null_mut::<DLManagedTensorVersioned>();
    // SAFETY: null is refused.
    assert!(unsafe { Tensor::from_dlpack_ptr(null, Order::Settled) }.is_err());
}

#[test]
fn another_minor_version_is_taken() {
    let made = Made::new(&[2], Some(&[1]));
    let raw = made.versioned(|managed| managed.version.minor = 99);
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) };
    assert_eq!(tensor.unwrap().len(), 2);
}

#[test]
fn the_byte_offset_counts_and_the_length_is_the_views() {
    let made = Made::new(&[3, 3], Some(&[3, 1]));
    let raw = made.versioned(|managed| managed.dl_tensor.byte_offset = 24);
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
    let view = describe(&tensor);
    assert_eq!((view.pointer(), view.len()), (0x7018, 9));
    assert!(view.is_contiguous());
    assert!(!view.is_exclusive());
    let error = made.refusal(|managed| managed.dl_tensor.byte_offset = u64::MAX);
    assert!(error.contains("beyond all addresses"), "{error}");
}

#[test]
fn nothing_may_be_null_and_something_not() {
    let made = Made::new(&[0, 3], None);
    let raw = made.versioned(|managed| {
        managed.dl_tensor.data = ptr::null_mut();
        managed.dl_tensor.byte_offset = 4;
    });
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
    let view = describe(&tensor);
    assert_eq!(
        (view.pointer(), view.len(), view.is_contiguous()),
        (0, 0, true)
    );
    let made = Made::new(&[1], None);
    let error = made.refusal(|managed| managed.dl_tensor.data = ptr::null_mut());
    assert!(error.contains("1 elements and a null pointer"), "{error}");
    // A scalar has no dimensions, and one element.
    let made = Made::new(&[], None);
    let raw = made.versioned(|managed| managed.dl_tensor.shape = ptr::null_mut());
    // SAFETY: as above.
    let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
    assert_eq!((tensor.len(), tensor.is_contiguous()), (1, true));
}

#[test]
fn strides_tell_what_is_contiguous() {
    for (shape, strides, contiguous) in [
        (&[2, 4][..], &[5, 1][..], false),
        (&[3, 2], &[1, 3], false),
        (&[1, 4], &[99, 1], true),
        (&[4, 1, 1], &[1, 0, -7], true),
        (&[4], &[-1], false),
        (&[3, 4], &[0, 1], false),
        (&[2, 0, 3], &[7, 7, 7], true),
    ] {
        let tensor = Made::new(shape, Some(strides)).import(Order::Settled);
        assert_eq!(tensor.is_contiguous(), contiguous, "{shape:?} {strides:?}");
        let view = describe(&tensor);
        assert_eq!(view.is_contiguous(), contiguous);
        let Layout::Strided {
            shape: seen,
            strides: seen_strides,
        } = view.layout()
        else {
            panic!("the shape is lost");
        };
        assert!(seen.iter().zip(shape).all(|(&a, &b)| a as i64 == b));
        assert!(
            seen_strides
                .iter()
                .zip(strides)
                .all(|(&a, &b)| a as i64 == b)
        );
    }
}

#[test]
fn contradictions_are_refused_and_let_go() {
    type Change = fn(&mut DLManagedTensorVersioned);
    let changes: [(Change, &str); 10] = [
        (|m| m.dl_tensor.ndim = -1, "-1 dimensions"),
        (|m| m.dl_tensor.shape = ptr::null_mut(), "gives no shape"),
        (
            |m| m.dl_tensor.device.device_type = DLDeviceType::CPU,
            "host memory; copy it to the GPU",
        ),
        (
            |m| m.dl_tensor.device.device_type = DLDeviceType::ROCM,
            "a ROCm device",
        ),
        (
            |m| m.dl_tensor.device.device_type = DLDeviceType(77),
            "type 77",
        ),
        (
            |m| m.dl_tensor.dtype = DLDataType::F4E2M1FN,
            "less than a byte",
        ),
        (|m| m.dl_tensor.dtype.lanes = 4, "vectors of 4 floats"),
        (|m| m.dl_tensor.dtype.lanes = 0, "vectors of 0 floats"),
        (
            |m| m.dl_tensor.data = ptr::without_provenance_mut(usize::MAX - 3),
            "beyond all addresses",
        ),
        (
            |m| m.dl_tensor.data = ptr::without_provenance_mut(4),
            "beyond all addresses",
        ),
    ];
    for (change, text) in changes {
        let made = Made::new(&[2, 3], Some(&[-3, 1]));
        let error = made.refusal(change);
        assert!(error.contains(text), "{error}");
        assert_eq!(made.released(), 1, "{text}");
    }
    for (shape, strides) in [
        (&[-2][..], &[1][..]),
        (&[i64::MAX, 3], &[3, 1]),
        (&[3], &[i64::MAX]),
        (&[2], &[i64::MIN]),
    ] {
        let made = Made::new(shape, Some(strides));
        made.refusal(|_| {});
        assert_eq!(made.released(), 1, "{shape:?}");
    }
}

#[test]
fn pinned_and_managed_memory_is_everywhere() {
    for kind in [DLDeviceType::CUDAHOST, DLDeviceType::CUDAMANAGED] {
        let made = Made::new(&[2], None);
        let raw = made.versioned(|managed| managed.dl_tensor.device.device_type = kind);
        // SAFETY: nothing uses the memory that it speaks of.
        let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
        assert_eq!(tensor.place(), Place::Everywhere);
    }
    assert_eq!(
        Made::new(&[2], None).import(Order::Settled).place(),
        Place::Device(0)
    );
}

#[test]
fn another_type_of_the_same_size_is_another_type() {
    let tensor = Made::new(&[2], None).import(Order::Settled);
    let error = AsDeviceView::<i32>::describe(&tensor)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected elements of i32, the array holds f32"),
        "{error}"
    );
    let error = AsDeviceViewMut::<f64>::describe_mut(&tensor)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected elements of f64, the array holds f32"),
        "{error}"
    );
    let tensor = tensor.reinterpret(DType::I32).unwrap();
    assert!(AsDeviceView::<i32>::describe(&tensor).is_ok());
    assert_eq!(tensor.dtype(), DType::I32);
    let error = tensor.reinterpret(DType::F64).unwrap_err();
    assert!(error.to_string().contains("4 bytes"), "{error}");
    // SAFETY: nothing uses the memory that it speaks of.
    let bytes = unsafe {
        Tensor::from_parts(
            0x7000,
            DType::U8,
            &[4],
            None,
            Place::Device(0),
            Order::Settled,
            Box::new(()),
        )
    }
    .unwrap();
    assert!(bytes.reinterpret(DType::Bool).is_err());
}

/// Whether a tensor is taken for elements of `T`.
fn is_of<T: crate::Element>(tensor: &Tensor) -> bool {
    AsDeviceView::<T>::describe(tensor).is_ok()
}

#[test]
fn every_element_type_takes_its_own_alone() {
    type Takes = fn(&Tensor) -> bool;
    let mut types: Vec<(DLDataType, Takes)> = vec![
        (DLDataType::BOOL, is_of::<bool>),
        (DLDataType::U8, is_of::<u8>),
        (DLDataType::U16, is_of::<u16>),
        (DLDataType::U32, is_of::<u32>),
        (DLDataType::U64, is_of::<u64>),
        (DLDataType::I8, is_of::<i8>),
        (DLDataType::I16, is_of::<i16>),
        (DLDataType::I32, is_of::<i32>),
        (DLDataType::I64, is_of::<i64>),
        (DLDataType::F32, is_of::<f32>),
        (DLDataType::F64, is_of::<f64>),
    ];
    #[cfg(feature = "half")]
    types.extend([
        (DLDataType::F16, is_of::<half::f16> as Takes),
        (DLDataType::BF16, is_of::<half::bf16>),
    ]);
    #[cfg(feature = "num-complex")]
    types.extend([
        (
            DLDataType::C64,
            is_of::<num_complex::Complex<f32>> as fn(&Tensor) -> bool,
        ),
        (DLDataType::C128, is_of::<num_complex::Complex<f64>>),
    ]);
    #[cfg(feature = "float8")]
    types.extend([
        (
            DLDataType::F8E4M3FN,
            is_of::<float8::F8E4M3> as fn(&Tensor) -> bool,
        ),
        (DLDataType::F8E5M2, is_of::<float8::F8E5M2>),
    ]);
    // Kinds for which Rust has no type.
    let others = [
        DLDataType::F8E3M4,
        DLDataType::F8E4M3,
        DLDataType::F8E4M3B11FNUZ,
        DLDataType::F8E4M3FNUZ,
        DLDataType::F8E5M2FNUZ,
        DLDataType::F8E8M0FNU,
    ];
    let named = types.iter().map(|(dtype, _)| *dtype);
    for dtype in named.chain(others) {
        let made = Made::new(&[2], None);
        let raw = made.versioned(|managed| managed.dl_tensor.dtype = dtype);
        // SAFETY: nothing uses the memory that it speaks of.
        let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
        for (own, takes) in &types {
            assert_eq!(takes(&tensor), *own == dtype, "{dtype:?} for {own:?}");
        }
    }
}

#[test]
fn the_legacy_struct_cannot_forbid_writing() {
    let tensor = || Made::new(&[2, 3], Some(&[1, 2]));
    let back = tensor().import(Order::Settled).into_legacy_dlpack(None);
    // SAFETY: it is ours.
    let back = unsafe { Tensor::from_dlpack(back.unwrap(), Order::Settled) }.unwrap();
    assert_eq!((back.shape(), back.strides()), (&[2, 3][..], &[1, 2][..]));
    let made = tensor();
    let raw = made.versioned(|managed| managed.flags = dlpark::DlpackFlags::READ_ONLY);
    // SAFETY: nothing uses the memory that it speaks of.
    let frozen = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
    let error = frozen.into_legacy_dlpack(None).err().unwrap().to_string();
    assert!(
        error.contains("which DLPack before 1.0 cannot say"),
        "{error}"
    );
    assert_eq!(made.released(), 1);
}

#[test]
fn read_only_tensors_say_so() {
    let made = Made::new(&[2], None);
    let raw = made.versioned(|managed| managed.flags = dlpark::DlpackFlags::READ_ONLY);
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap();
    assert!(
        AsDeviceViewMut::<f32>::describe_mut(&tensor)
            .unwrap()
            .is_read_only()
    );
    let back = tensor.into_dlpack(None).unwrap();
    assert!(back.flags().contains(dlpark::DlpackFlags::READ_ONLY));
}

#[test]
fn a_typed_tensor_was_checked() {
    let made = Made::new(&[2, 3], Some(&[1, 2]));
    let refused = made.import(Order::Settled).typed::<f32, 1>();
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("expected 1 dimensions, the array has 2"),
        "{error}"
    );
    let refused = made.import(Order::Settled).typed::<u32, 2>();
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("expected elements of u32"), "{error}");
    assert_eq!(made.released(), 2);
    let typed = made.import(Order::Settled).typed::<f32, 2>().unwrap();
    assert_eq!(
        (typed.shape(), typed.strides(), typed.len()),
        ([2, 3], [1, 2], 6)
    );
    assert_eq!(typed.describe().unwrap().len(), 6);
    drop(typed);
    assert_eq!(made.released(), 3);
}

#[test]
fn one_stream_needs_nothing() {
    let fake = fake::session();
    for (owner, ours) in [(OURS, OURS), (0, 0), (1, 0), (0, 1)] {
        let made = Made::new(&[2], None);
        let tensor = made.import(on(owner));
        launch(&tensor, ours).unwrap();
        launch(&tensor, ours).unwrap();
        assert_eq!(fake.calls(), [""; 0]);
        drop(tensor);
        fake.calls();
    }
}

#[test]
fn two_streams_wait_for_each_other() {
    let fake = fake::session();
    let made = Made::new(&[2], None);
    let mut tensor = made.import(on(THEIRS));
    let guard = AsDeviceViewMut::<f32>::acquire_mut(&mut tensor, stream(OURS)).unwrap();
    assert_eq!(fake.calls(), ["record on 0x77", "0x51 waits"]);
    guard.finish().unwrap();
    assert_eq!(fake.calls(), ["record on 0x51", "0x77 waits"]);
    // The owner's stream stands for all uses.
    drop(tensor);
    assert_eq!(fake.calls(), ["record on 0x77"]);
    assert_eq!(made.released(), 1);
}

#[test]
fn the_threads_own_default_stream_is_its_own() {
    let fake = fake::session();
    let made = Made::new(&[2], None);
    let tensor = made.import(on(2));
    launch(&tensor, OURS).unwrap();
    assert_eq!(
        fake.calls(),
        [
            "record on 0x2",
            "0x51 waits",
            "record on 0x51",
            "0x2 waits",
            "record on 0x51"
        ]
    );
    let error = thread::scope(|scope| scope.spawn(|| launch(&tensor, OURS)).join().unwrap());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("the default stream of another thread"),
        "{error}"
    );
    // No thread needs to reach it to let the tensor go.
    thread::spawn(move || drop(tensor)).join().unwrap();
    assert_eq!(made.released(), 1);
}

#[test]
fn without_a_stream_our_own_launches_wait_for_each_other() {
    let fake = fake::session();
    let made = Made::new(&[2], None);
    let tensor = made.import(Order::Settled);
    launch(&tensor, OURS).unwrap();
    assert_eq!(fake.calls(), ["record on 0x51"]);
    launch(&tensor, OURS).unwrap();
    assert_eq!(fake.calls(), ["record on 0x51"]);
    launch(&tensor, 0x52).unwrap();
    assert_eq!(fake.calls(), ["0x52 waits", "record on 0x52"]);
    drop(tensor);
    assert_eq!(made.released(), 1);
}

#[test]
fn an_owner_is_kept_while_the_device_is_busy() {
    let fake = fake::session();
    for order in [on(OURS), on(THEIRS), on(2), Order::Settled] {
        let made = Made::new(&[2], None);
        let tensor = made.import(order);
        launch(&tensor, OURS).unwrap();
        fake.busy(true);
        drop(tensor);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(made.released(), 0, "{order:?}");
        fake.busy(false);
        made.wait_for_release();
        thread::sleep(Duration::from_millis(5));
        assert_eq!(made.released(), 1, "{order:?}");
    }
}

#[test]
fn owners_are_let_go_once_from_many_threads() {
    let fake = fake::session();
    fake.busy(true);
    let all: Vec<&Made> = (0..64).map(|_| Made::new(&[2], None)).collect();
    thread::scope(|scope| {
        for chunk in all.chunks(8) {
            scope.spawn(move || {
                for made in chunk {
                    let tensor = made.import(on(THEIRS));
                    launch(&tensor, OURS).unwrap();
                }
            });
        }
    });
    assert!(all.iter().all(|made| made.released() == 0));
    fake.busy(false);
    for made in &all {
        made.wait_for_release();
    }
    thread::sleep(Duration::from_millis(5));
    assert!(all.iter().all(|made| made.released() == 1));
}

#[test]
fn failures_of_the_driver_lose_no_owner() {
    let fake = fake::session();
    for failing in ["event_record", "stream_wait_event"] {
        let made = Made::new(&[2], None);
        let tensor = made.import(on(THEIRS));
        fake.fail(Some(failing));
        let error = launch(&tensor, OURS).unwrap_err().to_string();
        assert!(error.contains("a failure of the test"), "{error}");
        drop(tensor);
        fake.fail(None);
        assert_eq!(made.released(), 1, "{failing}");
    }
    // Without an event for the uses, the context is waited for.
    let made = Made::new(&[2], None);
    let tensor = made.import(on(OURS));
    launch(&tensor, OURS).unwrap();
    fake.calls();
    fake.fail(Some("event_record"));
    drop(tensor);
    fake.fail(None);
    assert_eq!(fake.calls(), ["synchronize the context"]);
    assert_eq!(made.released(), 1);
}

#[test]
fn a_million_uses_with_failures_let_go_once_each() {
    let fake = fake::session();
    fake.quiet();
    let made: &[&Made] = &[
        Made::new(&[2], None),
        Made::new(&[2], None),
        Made::new(&[2], None),
    ];
    let orders = [on(OURS), on(THEIRS), Order::Settled];
    let (mut tensors, mut failures) = (0, 0);
    for round in 0..200_000_usize {
        let failing = match round % 11 {
            3 => Some("event_record"),
            7 => Some("stream_wait_event"),
            _ => None,
        };
        let which = round % 3;
        let tensor = made[which].import(orders[which]);
        tensors += 1;
        for raw in [OURS, THEIRS, OURS, 0, OURS] {
            fake.fail(if raw == 0 { failing } else { None });
            failures += usize::from(launch(&tensor, raw).is_err());
        }
        fake.busy(round % 64 == 0);
        drop(tensor);
        fake.fail(None);
        fake.busy(false);
    }
    assert!(failures > 10_000);
    let start = Instant::now();
    while made.iter().map(|made| made.released()).sum::<usize>() < tensors {
        assert!(start.elapsed() < Duration::from_secs(10), "never let go");
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(
        made.iter().map(|made| made.released()).sum::<usize>(),
        tensors
    );
}

#[test]
fn events_are_used_again() {
    let fake = fake::session();
    let made = Made::new(&[2], None);
    let tensor = made.import(on(THEIRS));
    launch(&tensor, OURS).unwrap();
    let made = fake.events_made();
    for _ in 0..1000 {
        launch(&tensor, OURS).unwrap();
    }
    assert_eq!(fake.events_made(), made);
}

#[test]
fn a_borrowed_tensor_is_ordered_and_owned_by_no_one() {
    let fake = fake::session();
    let made = Made::new(&[2], None);
    let given = made.tensor();
    // SAFETY: nothing uses the memory that it speaks of.
    let tensor = unsafe { BorrowedTensor::new(&given, on(THEIRS)) }
        .unwrap()
        .read_only();
    assert!(
        AsDeviceViewMut::<f32>::describe_mut(&tensor)
            .unwrap()
            .is_read_only()
    );
    AsDeviceView::<f32>::acquire(&tensor, stream(OURS))
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(
        fake.calls(),
        [
            "record on 0x77",
            "0x51 waits",
            "record on 0x51",
            "0x77 waits"
        ]
    );
    drop(tensor);
    assert_eq!(fake.calls(), [""; 0]);
}

#[test]
fn an_exported_tensor_comes_back_as_it_was() {
    let fake = fake::session();
    let made = Made::new(&[2, 3], Some(&[-3, 1]));
    let tensor = made.import(on(THEIRS));
    launch(&tensor, OURS).unwrap();
    fake.calls();
    let exported = tensor.into_dlpack(Some(stream(OURS))).unwrap();
    assert_eq!(fake.calls(), ["record on 0x77", "0x51 waits"]);
    assert_eq!(exported.version().major, 1);
    // SAFETY: nothing uses the memory that it speaks of.
    let again = unsafe { Tensor::from_dlpack(exported, on(OURS)) }.unwrap();
    assert_eq!(
        (again.shape(), again.strides()),
        (&[2, 3][..], &[-3, 1][..])
    );
    assert_eq!((again.pointer(), again.dtype()), (0x7000, DType::F32));
    assert_eq!(made.released(), 0);
    drop(again);
    assert_eq!(made.released(), 1);
}

#[test]
fn the_stream_arguments_of_the_protocols() {
    type Parse = unsafe fn(Option<i64>) -> Result<Order, ViewError>;
    let legacy = Order::Stream(ForeignStream::LEGACY_DEFAULT);
    let own = Order::Stream(ForeignStream::per_thread_default());
    let dlpack: Parse = Order::from_dlpack_stream;
    let interface: Parse = Order::from_array_interface_stream;
    for (parse, stream, order) in [
        (dlpack, None, Some(legacy)),
        (dlpack, Some(-1), Some(Order::Settled)),
        (dlpack, Some(0), None),
        (dlpack, Some(1), Some(legacy)),
        (dlpack, Some(2), Some(own)),
        (dlpack, Some(0x77), Some(on(0x77))),
        (dlpack, Some(-2), None),
        (interface, None, Some(Order::Settled)),
        (interface, Some(0), None),
        (interface, Some(1), Some(legacy)),
        (interface, Some(2), Some(own)),
        (interface, Some(0x77), Some(on(0x77))),
        (interface, Some(-1), None),
    ] {
        // SAFETY: the driver of these tests never looks at a handle.
        assert_eq!(unsafe { parse(stream) }.ok(), order, "{stream:?}");
    }
}

#[test]
fn layouts_are_those_of_dlpack_1_3() {
    use std::mem::{align_of, offset_of, size_of};
    assert_eq!(size_of::<DLTensor>(), 48);
    assert_eq!(offset_of!(DLTensor, byte_offset), 40);
    assert_eq!(align_of::<DLDataType>(), 2);
    assert_eq!(
        (
            size_of::<DLManagedTensor>(),
            offset_of!(DLManagedTensor, deleter)
        ),
        (64, 56)
    );
    assert_eq!(size_of::<DLManagedTensorVersioned>(), 80);
    assert_eq!(offset_of!(DLManagedTensorVersioned, flags), 24);
    assert_eq!(offset_of!(DLManagedTensorVersioned, dl_tensor), 32);
}
