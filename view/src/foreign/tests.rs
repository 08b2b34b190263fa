//! Foreign arrays on a driver that only writes down what it is asked for: what a launch need not do.

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{ForeignStream, Order, driver::Code, fake};
use crate::{
    AsDeviceView, BorrowedTensor, DType, Place, StreamRef, Tensor, ViewError, dlpack::dlpark::ffi,
};

const OURS: usize = 0x51;
const THEIRS: usize = 0x77;
const OTHERS: usize = 0x99;

const PLACE: Place = Place::Context {
    context: ptr::without_provenance_mut(fake::CONTEXT),
    device: 0,
};

fn stream(raw: usize) -> StreamRef<'static> {
    let context = ptr::without_provenance_mut(fake::CONTEXT);
    // SAFETY: the driver of these tests never looks at a handle.
    unsafe { StreamRef::from_raw(ptr::without_provenance_mut(raw), context, 0) }
}

fn on(raw: usize) -> Order {
    // SAFETY: as above.
    Order::Stream(unsafe { ForeignStream::from_raw(ptr::without_provenance_mut(raw)) })
}

/// Counts how often it was let go.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn tensor(place: Place, order: Order) -> (Tensor, Arc<AtomicUsize>) {
    let released = Arc::new(AtomicUsize::new(0));
    let owner = Box::new(Owner(released.clone()));
    // SAFETY: nothing uses the address.
    let tensor =
        unsafe { Tensor::from_parts(0x7000, DType::F32, &[2, 3], None, place, order, owner) };
    (tensor.unwrap(), released)
}

fn launch(tensor: &Tensor, stream: StreamRef<'_>) -> Result<(), ViewError> {
    AsDeviceView::<f32>::acquire(tensor, stream)?.finish()
}

fn is_settled(array: &impl AsDeviceView<f32>, raw: usize) -> bool {
    let view = array.describe().unwrap();
    let stream = ptr::without_provenance_mut(raw);
    assert_eq!(view.may_read_on(stream), view.may_write_on(stream));
    view.may_write_on(stream)
}

#[test]
fn a_tensor_settles_on_its_owners_stream_at_the_first_launch() {
    let fake = fake::session();
    for place in [PLACE, Place::Device(0)] {
        let (tensor, released) = tensor(place, on(THEIRS));
        assert!(!is_settled(&tensor, THEIRS));
        launch(&tensor, stream(OURS)).unwrap();
        assert!(!is_settled(&tensor, THEIRS) && !is_settled(&tensor, OURS));
        fake.calls();
        launch(&tensor, stream(THEIRS)).unwrap();
        assert!(is_settled(&tensor, THEIRS) && !is_settled(&tensor, OURS));
        // SAFETY: the tensor is settled on the stream.
        launch(&tensor, unsafe { stream(THEIRS).alone() }).unwrap();
        assert_eq!(fake.calls(), [""; 0]);
        // The launches that noted nothing are waited for all the same.
        fake.busy(true);
        drop(tensor);
        assert_eq!(fake.calls(), ["record on 0x77"]);
        assert_eq!(released.load(Ordering::SeqCst), 0);
        fake.busy(false);
    }
}

#[test]
fn a_default_stream_is_settled_on_in_one_context_only() {
    let _fake = fake::session();
    let (elsewhere, _) = tensor(Place::Device(0), on(0));
    let (here, _) = tensor(PLACE, on(0));
    for tensor in [&elsewhere, &here] {
        launch(tensor, stream(0)).unwrap();
    }
    assert!(!is_settled(&elsewhere, 0));
    assert!(is_settled(&here, 0) && !is_settled(&here, 2));
}

#[test]
fn an_order_that_is_no_streams_settles_nowhere() {
    let _fake = fake::session();
    for order in [Order::Settled, on(2)] {
        let (tensor, _) = tensor(PLACE, order);
        for raw in [0, 1, 2, OURS] {
            launch(&tensor, stream(raw)).unwrap();
            assert!(!is_settled(&tensor, raw));
        }
        assert!(!is_settled(&tensor, usize::MAX - 1));
    }
}

#[test]
fn what_the_driver_orders_is_not_joined() {
    let fake = fake::session();
    let calls = |launching, owner| {
        let (tensor, released) = tensor(PLACE, on(owner));
        launch(&tensor, stream(launching)).unwrap();
        let calls = fake.calls();
        // What the launch did is waited for in any case.
        fake.busy(true);
        drop(tensor);
        let noted = fake.calls();
        assert_eq!(released.load(Ordering::SeqCst), 0);
        fake.busy(false);
        (calls, noted)
    };
    for legacy in [0, 1] {
        let (launched, noted) = calls(legacy, fake::BLOCKING);
        assert_eq!((launched, noted), (vec![], vec!["record on 0xb1".into()]));
        let (launched, noted) = calls(fake::BLOCKING, legacy);
        assert_eq!((launched, noted), (vec![], vec!["record on 0x1".into()]));
        let (launched, noted) = calls(2, legacy);
        assert_eq!((launched, noted), (vec![], vec!["record on 0x1".into()]));
        // No stream stands for the uses of an array that one thread alone can reach.
        assert_eq!(calls(legacy, 2).0, [format!("record on {legacy:#x}")]);
    }
    for (launching, owner) in [
        (0, OURS),
        (OURS, 0),
        (0, fake::BLOCKING_ELSEWHERE),
        (fake::BLOCKING, 2),
        (fake::BLOCKING, OURS),
        (OURS, fake::BLOCKING),
        (fake::BLOCKING, THEIRS),
    ] {
        let (launched, _) = calls(launching, owner);
        let [record, wait, ..] = &*launched else {
            panic!("{launching:#x} and {owner:#x} are not joined: {launched:?}");
        };
        assert_eq!(*record, format!("record on {:#x}", owner.max(1)));
        assert_eq!(*wait, format!("{launching:#x} waits"));
    }
}

#[test]
fn threads_and_contexts_have_default_streams_of_their_own() {
    let fake = fake::session();
    for (order, place) in [(Order::Settled, PLACE), (Order::Settled, Place::Everywhere)] {
        let (tensor, _) = tensor(place, order);
        launch(&tensor, stream(2)).unwrap();
        launch(&tensor, stream(2)).unwrap();
        fake.calls();
        // The handle is the same, and the stream another one.
        thread::scope(|scope| {
            scope.spawn(|| launch(&tensor, stream(2)).unwrap());
        });
        assert_eq!(fake.calls(), ["0x2 waits", "record on 0x2"]);
        // It did not come after what this thread had it do.
        launch(&tensor, stream(OURS)).unwrap();
        assert_eq!(fake.calls()[..2], ["0x51 waits", "0x51 waits"]);
    }
    let elsewhere = ptr::without_provenance_mut(fake::CONTEXT + 1);
    // SAFETY: the driver of these tests never looks at a handle.
    let elsewhere = unsafe { StreamRef::from_raw(ptr::null_mut(), elsewhere, 1) };
    for order in [Order::Settled, on(0), on(1)] {
        let (tensor, released) = tensor(Place::Everywhere, order);
        launch(&tensor, stream(0)).unwrap();
        fake.calls();
        launch(&tensor, elsewhere).unwrap();
        assert_eq!(fake.calls(), ["0x0 waits", "record on 0x0"], "{order:?}");
        // The owner is kept for both.
        fake.busy(true);
        drop(tensor);
        assert_eq!(released.load(Ordering::SeqCst), 0);
        fake.busy(false);
    }
}

#[test]
fn a_stream_is_joined_once_by_all_arrays_of_a_launch() {
    let fake = fake::session();
    let arrays = [THEIRS, OTHERS, THEIRS, OTHERS].map(|raw| tensor(PLACE, on(raw)).0);
    for _ in 0..2 {
        let launching = stream(OURS).of_one_launch();
        let guards = arrays
            .each_ref()
            .map(|array| AsDeviceView::<f32>::acquire(array, launching).unwrap());
        assert_eq!(
            fake.calls(),
            [
                "record on 0x77",
                "0x51 waits",
                "record on 0x99",
                "0x51 waits"
            ]
        );
        for guard in guards {
            guard.finish().unwrap();
        }
        assert_eq!(fake.calls(), ["record on 0x51", "0x77 waits", "0x99 waits"]);
    }
    // Of a stream that is not of one launch, each array sees to itself.
    for array in &arrays[..2] {
        launch(array, stream(OURS)).unwrap();
    }
    assert_eq!(fake.calls().len(), 8);
}

#[test]
fn the_end_of_one_launch_is_not_that_of_another() {
    let fake = fake::session();
    let arrays = [THEIRS, OTHERS].map(|raw| tensor(PLACE, on(raw)).0);
    let launching = stream(OURS).of_one_launch();
    let [first, second] = arrays
        .each_ref()
        .map(|array| AsDeviceView::<f32>::acquire(array, launching).unwrap());
    first.finish().unwrap();
    launch(&arrays[0], stream(OURS).of_one_launch()).unwrap();
    fake.calls();
    second.finish().unwrap();
    assert_eq!(fake.calls(), ["record on 0x51", "0x99 waits"]);
    // An event that could not be recorded stands for nothing.
    let guards = arrays
        .each_ref()
        .map(|array| AsDeviceView::<f32>::acquire(array, launching).unwrap());
    fake.fail(Some("event_record"));
    let results = guards.map(|guard| guard.finish().is_err());
    assert_eq!(results, [true, true]);
    fake.fail(None);
}

#[test]
fn a_join_that_failed_is_no_join() {
    let fake = fake::session();
    let (one, other) = (tensor(PLACE, on(THEIRS)).0, tensor(PLACE, on(THEIRS)).0);
    let launching = stream(OURS).of_one_launch();
    fake.fail(Some("event_record"));
    let error = launch(&one, launching).unwrap_err().to_string();
    assert!(error.contains("cuEventRecord"), "{error}");
    fake.fail(None);
    launch(&other, launching).unwrap();
    assert_eq!(fake.calls().len(), 4);
}

#[test]
fn a_borrowed_tensor_joins_with_the_others() {
    let fake = fake::session();
    let (owned, _) = tensor(PLACE, on(THEIRS));
    let (mut shape, mut strides) = ([6_i64], [1_i64]);
    let given = ffi::DLTensor {
        data: ptr::without_provenance_mut(0x9000),
        device: ffi::DLDevice {
            device_type: ffi::DLDeviceType::CUDA,
            device_id: 0,
        },
        ndim: 1,
        dtype: ffi::DLDataType::F32,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    // SAFETY: nothing uses the memory that it speaks of.
    let borrowed = unsafe { BorrowedTensor::new(&given, on(THEIRS)) }.unwrap();
    let launching = stream(OURS).of_one_launch();
    let first = AsDeviceView::<f32>::acquire(&borrowed, launching).unwrap();
    let second = AsDeviceView::<f32>::acquire(&owned, launching).unwrap();
    assert_eq!(fake.calls(), ["record on 0x77", "0x51 waits"]);
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(fake.calls(), ["record on 0x51", "0x77 waits"]);
}

#[test]
fn releases_create_no_events() {
    let fake = fake::session();
    let use_and_drop = || {
        let (tensor, released) = tensor(PLACE, on(THEIRS));
        launch(&tensor, stream(OURS)).unwrap();
        drop(tensor);
        assert_eq!(released.load(Ordering::SeqCst), 1);
    };
    use_and_drop();
    let made = fake.events_made();
    for _ in 0..1000 {
        use_and_drop();
    }
    assert_eq!(fake.events_made(), made);
    // One that the driver refuses to record is not kept.
    fake.fail(Some("event_record"));
    let (tensor, released) = tensor(PLACE, on(THEIRS));
    launch(&tensor, stream(THEIRS)).unwrap();
    drop(tensor);
    assert_eq!(released.load(Ordering::SeqCst), 1);
    fake.fail(None);
    use_and_drop();
    assert!(fake.events_made() > made);
}

#[test]
fn an_owner_is_kept_while_a_capture_hides_whether_the_device_is_done() {
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: what a capture on another thread forbids.
    const UNSUPPORTED: Code = Code(900);
    let fake = fake::session();
    let use_and_drop = || {
        let (tensor, released) = tensor(PLACE, on(THEIRS));
        launch(&tensor, stream(THEIRS)).unwrap();
        drop(tensor);
        released
    };
    let is_released = |released: &AtomicUsize| {
        let limit = Instant::now() + Duration::from_secs(10);
        while released.load(Ordering::SeqCst) == 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        released.load(Ordering::SeqCst) == 1
    };
    fake.say_of_events(UNSUPPORTED);
    let released = use_and_drop();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(released.load(Ordering::SeqCst), 0);
    fake.busy(false);
    assert!(is_released(&released));
    // An event that went into a capture never tells, and keeps nobody else.
    fake.say_of_events(Code::CAPTURED_EVENT);
    let kept = use_and_drop();
    thread::sleep(Duration::from_millis(100));
    fake.busy(true);
    let released = use_and_drop();
    fake.busy(false);
    assert!(is_released(&released));
    assert_eq!(kept.load(Ordering::SeqCst), 0);
}

#[test]
fn nothing_is_recorded_on_an_owners_stream_that_is_being_captured() {
    let fake = fake::session();
    let (tensor, released) = tensor(PLACE, on(THEIRS));
    launch(&tensor, stream(THEIRS)).unwrap();
    fake.capturing(true);
    drop(tensor);
    assert_eq!(fake.calls(), [""; 0]);
    assert_eq!(released.load(Ordering::SeqCst), 0);
}
