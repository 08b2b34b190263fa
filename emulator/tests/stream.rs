//! Streams, events and host functions.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{cu, fresh, with};
use cudarc::driver::{result, sys};
use gridcall_emulator::{Config, Order};

extern "C" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the stream's work.
    let counter = unsafe { &*data.cast::<AtomicU32>() };
    counter.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn call_the_driver(data: *mut c_void) {
    let mut pointer = 0;
    let code = cu!(cuMemAlloc_v2(&raw mut pointer, 1));
    // SAFETY: the test passes a number that outlives the stream's work.
    let answer = unsafe { &*data.cast::<AtomicU32>() };
    answer.store(code, Ordering::SeqCst);
}

fn data(counter: &AtomicU32) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
}

#[test]
fn a_host_function_runs_at_its_turn() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let counter = AtomicU32::new(0);
    for _ in 0..3 {
        assert_eq!(
            cu!(cuLaunchHostFunc(
                stream.cu_stream(),
                Some(count),
                data(&counter)
            )),
            0
        );
    }
    assert_eq!(counter.load(Ordering::SeqCst), 0);
    stream.synchronize().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 3);
}

#[test]
fn a_host_function_must_not_call_the_driver() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let answer = AtomicU32::new(0);
    let code = cu!(cuLaunchHostFunc(
        stream.cu_stream(),
        Some(call_the_driver),
        data(&answer)
    ));
    assert_eq!(code, 0);
    stream.synchronize().unwrap();
    assert_eq!(answer.load(Ordering::SeqCst), 800);
    drop(device);
}

#[test]
fn a_callback_learns_its_stream() {
    extern "C" fn learn(stream: sys::CUstream, code: sys::CUresult, data: *mut c_void) {
        // SAFETY: the test passes a number that outlives the stream's work.
        let answer = unsafe { &*data.cast::<AtomicU32>() };
        let handle = u32::try_from(stream as usize).unwrap();
        answer.store(handle + code as u32, Ordering::SeqCst);
    }
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let answer = AtomicU32::new(0);
    let code = cu!(cuStreamAddCallback(
        stream.cu_stream(),
        Some(learn),
        data(&answer),
        0
    ));
    assert_eq!(code, 0);
    stream.synchronize().unwrap();
    assert_eq!(
        answer.load(Ordering::SeqCst),
        u32::try_from(stream.cu_stream() as usize).unwrap()
    );
}

#[test]
fn a_destroyed_stream_still_works() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let counter = AtomicU32::new(0);
    assert_eq!(
        cu!(cuLaunchHostFunc(
            stream.cu_stream(),
            Some(count),
            data(&counter)
        )),
        0
    );
    drop(stream);
    context.synchronize().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 1);
}

#[test]
fn only_what_is_waited_for_runs() {
    let (_device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    assert_eq!(
        cu!(cuLaunchHostFunc(a.cu_stream(), Some(count), data(&first))),
        0
    );
    let event = a.record_event(None).unwrap();
    assert_eq!(
        cu!(cuLaunchHostFunc(a.cu_stream(), Some(count), data(&first))),
        0
    );
    assert_eq!(
        cu!(cuLaunchHostFunc(b.cu_stream(), Some(count), data(&second))),
        0
    );
    event.synchronize().unwrap();
    assert_eq!(
        (first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)),
        (1, 0)
    );
    context.synchronize().unwrap();
    assert_eq!(
        (first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)),
        (2, 1)
    );
}

#[test]
fn eager_work_runs_at_once() {
    let (_device, context) = with(&Config::default().order(Order::Eager));
    let stream = context.new_stream().unwrap();
    let counter = AtomicU32::new(0);
    assert_eq!(
        cu!(cuLaunchHostFunc(
            stream.cu_stream(),
            Some(count),
            data(&counter)
        )),
        0
    );
    assert_eq!(counter.load(Ordering::SeqCst), 1);
}

#[test]
fn the_null_and_the_legacy_stream_are_one() {
    let (_device, context) = fresh();
    let id = |handle: usize| {
        let mut id = 0;
        assert_eq!(cu!(cuStreamGetId(handle as sys::CUstream, &raw mut id)), 0);
        id
    };
    assert_eq!(id(0), id(1));
    assert_ne!(id(0), id(2));
    let mine = id(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            context.bind_to_thread().unwrap();
            assert_ne!(id(2), mine);
            assert_eq!(id(0), id(1));
        });
    });
    let stream = context.new_stream().unwrap();
    let (mut owner, mut flags) = (null_mut(), 0);
    assert_eq!(cu!(cuStreamGetCtx(stream.cu_stream(), &raw mut owner)), 0);
    assert_eq!(cu!(cuStreamGetFlags(stream.cu_stream(), &raw mut flags)), 0);
    assert_eq!((owner, flags), (context.cu_ctx(), 1));
}

type GetId = unsafe extern "C" fn(sys::CUstream, *mut u64) -> u32;

/// A program compiled for per-thread default streams asks for other functions.
#[test]
fn the_null_stream_is_the_thread_s_own_on_request() {
    let (_device, context) = fresh();
    context.bind_to_thread().unwrap();
    let mut function = null_mut();
    let code = cu!(cuGetProcAddress_v2(
        c"cuStreamGetId".as_ptr(),
        &raw mut function,
        12000,
        2,
        null_mut()
    ));
    assert_eq!(code, 0);
    // SAFETY: the function of that name has this type.
    let get_id = unsafe { std::mem::transmute::<*mut c_void, GetId>(function) };
    let (mut null, mut mine, mut legacy) = (0, 0, 0);
    // SAFETY: writes one number to where the pointer leads.
    assert_eq!(unsafe { get_id(null_mut(), &raw mut null) }, 0);
    assert_eq!(
        cu!(cuStreamGetId(
            std::ptr::without_provenance_mut(2),
            &raw mut mine
        )),
        0
    );
    assert_eq!(cu!(cuStreamGetId(null_mut(), &raw mut legacy)), 0);
    assert_eq!(null, mine);
    assert_ne!(null, legacy);
}

#[test]
fn priorities_have_a_range() {
    let (_device, context) = fresh();
    let (least, greatest) = result::stream::get_priority_range().unwrap();
    assert!(greatest < least);
    let stream = context.new_stream_with_priority(greatest).unwrap();
    let mut priority = 0;
    assert_eq!(
        cu!(cuStreamGetPriority(stream.cu_stream(), &raw mut priority)),
        0
    );
    assert_eq!(priority, greatest);
}

#[test]
fn a_handle_that_is_none_is_refused() {
    let (_device, _context) = fresh();
    let nothing = 0x1234_usize as sys::CUstream;
    assert_eq!(cu!(cuStreamSynchronize(nothing)), 400);
    assert_eq!(cu!(cuEventSynchronize(0x1234_usize as sys::CUevent)), 400);
    assert_eq!(cu!(cuStreamDestroy_v2(null_mut())), 400);
}

#[test]
fn events_tell_how_far_a_stream_is() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let event = context.new_event(None).unwrap();
    assert!(event.is_complete());
    let data = stream.alloc_zeros::<u8>(10).unwrap();
    event.record(&stream).unwrap();
    assert!(!event.try_is_complete().unwrap());
    event.synchronize().unwrap();
    assert!(event.try_is_complete().unwrap());
    drop(data);
}

#[test]
fn the_time_between_events() {
    let (_device, context) = fresh();
    let timed = || {
        context
            .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
            .unwrap()
    };
    let (start, end) = (timed(), timed());
    let mut time = -1.0;
    let elapsed =
        |time: &mut f32, start: &cudarc::driver::CudaEvent, end: &cudarc::driver::CudaEvent| {
            cu!(cuEventElapsedTime_v2(
                time,
                start.cu_event(),
                end.cu_event()
            ))
        };
    assert_eq!(elapsed(&mut time, &start, &end), 400);
    let stream = context.new_stream().unwrap();
    start.record(&stream).unwrap();
    end.record(&stream).unwrap();
    assert_eq!(elapsed(&mut time, &start, &end), 600);
    stream.synchronize().unwrap();
    assert_eq!(elapsed(&mut time, &start, &end), 0);
    assert!(time >= 0.0);
    let untimed = context.new_event(None).unwrap();
    untimed.record(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(elapsed(&mut time, &start, &untimed), 400);
}

#[test]
fn threads_share_a_context() {
    let (device, context) = fresh();
    std::thread::scope(|scope| {
        for value in 0..8u8 {
            let context = &context;
            scope.spawn(move || {
                let stream = context.new_stream().unwrap();
                for _ in 0..20 {
                    let data = stream.clone_htod(&[value; 1000]).unwrap();
                    assert_eq!(stream.clone_dtoh(&data).unwrap(), [value; 1000]);
                }
            });
        }
    });
    context.synchronize().unwrap();
    assert_eq!(device.reports(), []);
    assert_eq!(device.leaks(), []);
}
