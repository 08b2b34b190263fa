//! Missing waits, uses after a free and wrong events are found whatever order ran, and correct programs
//! are left alone. Copies and memsets serve as operations.

mod common;

use std::sync::Arc;

use common::{cu, fresh, kinds, with};
use cudarc::driver::{CudaContext, CudaStream, sys};
use gridcall_emulator::{Config, Device, Order, ReportKind};

/// Memory without cudarc's event tracking.
fn raw_alloc(stream: &CudaStream, bytes: usize) -> u64 {
    let mut pointer = 0;
    assert_eq!(
        cu!(cuMemAllocAsync(&raw mut pointer, bytes, stream.cu_stream())),
        0
    );
    pointer
}

fn set(pointer: u64, value: u8, bytes: usize, stream: &CudaStream) {
    assert_eq!(
        cu!(cuMemsetD8Async(pointer, value, bytes, stream.cu_stream())),
        0
    );
}

fn copy(to: u64, from: u64, bytes: usize, stream: &CudaStream) {
    assert_eq!(
        cu!(cuMemcpyDtoDAsync_v2(to, from, bytes, stream.cu_stream())),
        0
    );
}

fn free(pointer: u64, stream: &CudaStream) {
    assert_eq!(cu!(cuMemFreeAsync(pointer, stream.cu_stream())), 0);
}

fn read(pointer: u64, bytes: usize, stream: &CudaStream) -> Vec<u8> {
    let mut back = vec![0; bytes];
    let code = cu!(cuMemcpyDtoHAsync_v2(
        back.as_mut_ptr().cast(),
        pointer,
        bytes,
        stream.cu_stream()
    ));
    assert_eq!(code, 0);
    back
}

/// A device, a context that tracks nothing itself, and two streams.
fn two_streams(order: Order) -> (Device, Arc<CudaContext>, Arc<CudaStream>, Arc<CudaStream>) {
    let idle = std::time::Duration::from_secs(600);
    let (device, context) = with(&Config::default().order(order).idle(idle));
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    (device, context, a, b)
}

const ORDERS: [Order; 4] = [
    Order::Lazy,
    Order::Eager,
    Order::Random(1),
    Order::Random(2),
];

/// Runs a program in each order, and says which kinds of mistakes were found each time.
fn in_each_order(
    program: impl Fn(&Arc<CudaContext>, &CudaStream, &CudaStream),
) -> Vec<Vec<ReportKind>> {
    ORDERS
        .into_iter()
        .map(|order| {
            let (device, context, a, b) = two_streams(order);
            program(&context, &a, &b);
            let _ = context.synchronize();
            kinds(&device)
        })
        .collect()
}

#[track_caller]
fn assert_found(kind: ReportKind, program: impl Fn(&Arc<CudaContext>, &CudaStream, &CudaStream)) {
    for (order, found) in ORDERS.into_iter().zip(in_each_order(program)) {
        assert_eq!(found.first(), Some(&kind), "{order:?}");
    }
}

#[track_caller]
fn assert_clean(program: impl Fn(&Arc<CudaContext>, &CudaStream, &CudaStream)) {
    for (order, found) in ORDERS.into_iter().zip(in_each_order(program)) {
        assert_eq!(found, [], "{order:?}");
    }
}

/// Lets `later` wait for all that `earlier` has been given.
fn join(later: &CudaStream, earlier: &CudaStream) {
    later.join(earlier).unwrap();
}

#[test]
fn a_write_and_a_read_without_a_wait() {
    assert_found(ReportKind::Conflict, |_, a, b| {
        let (x, y) = (raw_alloc(a, 64), raw_alloc(a, 64));
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        copy(y, x, 64, b);
    });
}

#[test]
fn a_read_and_a_write_without_a_wait() {
    assert_found(ReportKind::Conflict, |_, a, b| {
        let (x, y) = (raw_alloc(a, 64), raw_alloc(a, 64));
        set(x, 1, 64, a);
        a.synchronize().unwrap();
        copy(y, x, 64, a);
        set(x, 2, 64, b);
    });
}

#[test]
fn two_writes_without_a_wait() {
    assert_found(ReportKind::Conflict, |_, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        set(x + 63, 2, 1, b);
    });
}

#[test]
fn an_event_recorded_too_early() {
    assert_found(ReportKind::Conflict, |context, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        let event = context.new_event(None).unwrap();
        event.record(a).unwrap();
        set(x, 1, 64, a);
        b.wait(&event).unwrap();
        set(x, 2, 64, b);
    });
}

#[test]
fn an_event_of_the_wrong_stream() {
    assert_found(ReportKind::Conflict, |context, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        let event = context.new_event(None).unwrap();
        event.record(b).unwrap();
        b.wait(&event).unwrap();
        set(x, 2, 64, b);
    });
}

#[test]
fn an_event_never_recorded() {
    assert_found(ReportKind::Conflict, |context, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        let event = context.new_event(None).unwrap();
        b.wait(&event).unwrap();
        set(x, 2, 64, b);
    });
}

#[test]
fn an_event_recorded_over_before_the_wait() {
    assert_found(ReportKind::Conflict, |context, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        let event = context.new_event(None).unwrap();
        set(x, 1, 64, a);
        event.record(a).unwrap();
        event.record(b).unwrap();
        b.wait(&event).unwrap();
        set(x, 2, 64, b);
    });
}

#[test]
fn the_host_waits_for_the_wrong_stream() {
    assert_found(ReportKind::Conflict, |_, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        b.synchronize().unwrap();
        set(x, 2, 64, b);
    });
}

#[test]
fn a_non_blocking_stream_does_not_wait_for_the_default_stream() {
    assert_found(ReportKind::Conflict, |context, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, &context.default_stream());
        set(x, 2, 64, b);
    });
}

#[test]
fn use_on_another_stream_than_the_allocating_one() {
    assert_found(ReportKind::UseBeforeAllocation, |_, a, b| {
        let x = raw_alloc(a, 64);
        set(x, 1, 64, b);
    });
}

#[test]
fn a_free_on_another_stream() {
    assert_found(ReportKind::UseAfterFree, |_, a, b| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        free(x, b);
    });
}

#[test]
fn a_use_after_the_free_in_the_same_stream() {
    assert_found(ReportKind::UseAfterFree, |_, a, _| {
        let x = raw_alloc(a, 64);
        free(x, a);
        let _ = cu!(cuMemsetD8Async(x, 1, 64, a.cu_stream()));
    });
}

#[test]
fn a_use_after_the_host_freed_memory_of_a_stream() {
    assert_found(ReportKind::UseAfterFree, |_, a, _| {
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, a);
        let mut y = 0;
        assert_eq!(cu!(cuMemAllocAsync(&raw mut y, 64, a.cu_stream())), 0);
        set(y, 1, 64, a);
        assert_eq!(cu!(cuMemFree_v2(x)), 0);
    });
}

#[test]
fn a_double_free() {
    assert_found(ReportKind::UseAfterFree, |_, a, _| {
        let x = raw_alloc(a, 64);
        free(x, a);
        assert_eq!(cu!(cuMemFreeAsync(x, a.cu_stream())), 1);
    });
}

#[test]
fn pinned_memory_written_by_two_streams() {
    assert_found(ReportKind::Conflict, |_, a, b| {
        let mut pinned = std::ptr::null_mut();
        assert_eq!(cu!(cuMemHostAlloc(&raw mut pinned, 64, 0)), 0);
        let x = raw_alloc(a, 64);
        set(x, 1, 64, a);
        a.synchronize().unwrap();
        for stream in [a, b] {
            assert_eq!(
                cu!(cuMemcpyDtoHAsync_v2(pinned, x, 64, stream.cu_stream())),
                0
            );
        }
        assert_eq!(cu!(cuMemFreeHost(pinned)), 0);
    });
}

#[test]
fn waits_by_events_are_enough() {
    assert_clean(|_, a, b| {
        let (x, y) = (raw_alloc(a, 64), raw_alloc(a, 64));
        set(x, 1, 64, a);
        join(b, a);
        copy(y, x, 64, b);
        join(a, b);
        set(x, 2, 64, a);
        assert_eq!(read(y, 64, b), [1; 64]);
        free(x, a);
        free(y, a);
    });
}

#[test]
fn a_chain_of_events_is_enough() {
    assert_clean(|context, a, b| {
        let x = raw_alloc(a, 64);
        set(x, 1, 64, a);
        let c = context.new_stream().unwrap();
        join(&c, a);
        join(b, &c);
        set(x, 2, 64, b);
        join(a, b);
        free(x, a);
    });
}

#[test]
fn the_host_in_between_is_enough() {
    assert_clean(|context, a, b| {
        let x = raw_alloc(a, 64);
        set(x, 1, 64, a);
        a.synchronize().unwrap();
        set(x, 2, 64, b);
        let event = context.new_event(None).unwrap();
        event.record(b).unwrap();
        event.synchronize().unwrap();
        assert_eq!(read(x, 64, a), [2; 64]);
        free(x, a);
    });
}

#[test]
fn asking_until_it_is_done_is_enough() {
    assert_clean(|_, a, b| {
        let x = raw_alloc(a, 64);
        set(x, 1, 64, a);
        while cu!(cuStreamQuery(a.cu_stream())) != 0 {}
        set(x, 2, 64, b);
        let event = b.record_event(None).unwrap();
        while !event.is_complete() {}
        set(x, 3, 64, a);
    });
}

#[test]
fn halves_of_an_array_may_be_written_at_once() {
    assert_clean(|_, a, b| {
        let x = raw_alloc(a, 64);
        join(b, a);
        set(x, 1, 32, a);
        set(x + 32, 2, 32, b);
        join(a, b);
        let all = read(x, 64, a);
        assert_eq!((all[0], all[63]), (1, 2));
    });
}

#[test]
fn two_readers_are_no_conflict() {
    assert_clean(|_, a, b| {
        let (x, y, z) = (raw_alloc(a, 64), raw_alloc(a, 64), raw_alloc(a, 64));
        set(x, 1, 64, a);
        join(b, a);
        copy(y, x, 64, a);
        copy(z, x, 64, b);
    });
}

#[test]
fn blocking_streams_and_the_default_stream_wait_for_each_other() {
    assert_clean(|context, a, _| {
        let mut blocking = std::ptr::null_mut();
        assert_eq!(cu!(cuStreamCreate(&raw mut blocking, 0)), 0);
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        set(x, 1, 64, &context.default_stream());
        assert_eq!(cu!(cuMemsetD8Async(x, 2, 64, blocking)), 0);
        set(x, 3, 64, &context.default_stream());
        assert_eq!(cu!(cuStreamDestroy_v2(blocking)), 0);
        assert_eq!(read(x, 64, &context.default_stream()), [3; 64]);
    });
}

#[test]
fn a_destroyed_blocking_stream_still_holds_the_default_stream_back() {
    assert_clean(|context, a, _| {
        let mut blocking = std::ptr::null_mut();
        assert_eq!(cu!(cuStreamCreate(&raw mut blocking, 0)), 0);
        let x = raw_alloc(a, 64);
        a.synchronize().unwrap();
        assert_eq!(cu!(cuMemsetD8Async(x, 2, 64, blocking)), 0);
        assert_eq!(cu!(cuStreamDestroy_v2(blocking)), 0);
        set(x, 3, 64, &context.default_stream());
    });
}

#[test]
fn a_missing_wait_shows_as_an_old_value_by_default() {
    let (_device, _context, a, b) = two_streams(Order::Lazy);
    let x = raw_alloc(&a, 1);
    set(x, 1, 1, &a);
    a.synchronize().unwrap();
    set(x, 2, 1, &a);
    assert_eq!(read(x, 1, &b), [1]);
    assert_eq!(read(x, 1, &a), [2]);
}

#[test]
fn a_report_names_both_sides_and_the_cure() {
    let (device, _context, a, b) = two_streams(Order::Lazy);
    let x = raw_alloc(&a, 64);
    a.synchronize().unwrap();
    set(x, 1, 64, &a);
    set(x + 16, 2, 16, &b);
    a.synchronize().unwrap();
    b.synchronize().unwrap();
    let report = device.take_reports().remove(0).to_string();
    for part in [
        "a memset of 64 bytes on stream",
        "a memset of 16 bytes on stream",
        "bytes 16..32 of allocation #1, 64 bytes",
        "let one stream wait for an event recorded on the other",
    ] {
        assert!(report.contains(part), "`{part}` is not in `{report}`");
    }
}

/// Two readers on two streams, then a drop: cudarc's array remembers only the last reader.
#[test]
fn cudarc_frees_an_array_under_its_first_reader() {
    let (device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let owner = context.new_stream().unwrap();
    let data = owner.clone_htod(&[1u8; 64]).unwrap();
    let mut first = owner.alloc_zeros::<u8>(64).unwrap();
    let mut second = owner.alloc_zeros::<u8>(64).unwrap();
    a.memcpy_dtod(&data, &mut first).unwrap();
    b.memcpy_dtod(&data, &mut second).unwrap();
    drop(data);
    context.synchronize().unwrap();
    assert_eq!(kinds(&device), [ReportKind::UseAfterFree]);
}

/// Dropping the last created stream turns cudarc's tracking off while work runs on it.
#[test]
fn cudarc_stops_tracking_when_the_last_stream_is_dropped() {
    let (device, context) = fresh();
    let default = context.default_stream();
    let stream = context.new_stream().unwrap();
    let mut data = default.clone_htod(&[1u8; 64]).unwrap();
    stream.memset_zeros(&mut data).unwrap();
    drop(stream);
    drop(data);
    context.synchronize().unwrap();
    assert_eq!(kinds(&device), [ReportKind::UseAfterFree]);
}

/// The per-thread stream is not counted, so nothing is tracked.
#[test]
fn cudarc_does_not_track_the_per_thread_stream() {
    let (device, context) = fresh();
    let mine = context.per_thread_stream();
    let mut data = mine.clone_htod(&[1u8; 64]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| context.per_thread_stream().memset_zeros(&mut data).unwrap());
    });
    let _ = mine.clone_dtoh(&data).unwrap();
    context.synchronize().unwrap();
    assert!(
        matches!(
            kinds(&device)[..],
            [ReportKind::Conflict | ReportKind::UseBeforeAllocation, ..]
        ),
        "{:?}",
        device.reports()
    );
}

#[test]
fn cudarc_alone_is_clean_where_its_tracking_holds() {
    for seed in 0..20 {
        let (device, context) = with(&Config::default().order(Order::Random(seed)));
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let data = a.clone_htod(&[1u32; 256]).unwrap();
        let mut copy = b.alloc_zeros::<u32>(256).unwrap();
        b.memcpy_dtod(&data, &mut copy).unwrap();
        a.memset_zeros(&mut copy).unwrap();
        assert_eq!(b.clone_dtoh(&copy).unwrap(), [0; 256]);
        drop((data, copy));
        context.synchronize().unwrap();
        assert_eq!(device.reports(), []);
        assert_eq!(device.leaks(), []);
    }
}

#[test]
fn a_pipeline_is_clean_in_many_orders() {
    for seed in 0..200 {
        let (device, _context, a, b) = two_streams(Order::Random(seed));
        let buffers = [raw_alloc(&a, 256), raw_alloc(&a, 256)];
        join(&b, &a);
        for round in 0..6u8 {
            let buffer = buffers[usize::from(round % 2)];
            set(buffer, round, 256, &a);
            join(&b, &a);
            assert_eq!(read(buffer, 256, &b), [round; 256]);
            join(&a, &b);
        }
        for buffer in buffers {
            free(buffer, &a);
        }
        a.synchronize().unwrap();
        assert_eq!(device.reports(), [], "seed {seed}");
    }
}

#[test]
fn work_that_nobody_waits_for_runs_when_the_host_is_quiet() {
    let config = Config::default().idle(std::time::Duration::from_millis(5));
    let (_device, context) = with(&config);
    let stream = context.new_stream().unwrap();
    let mut pinned = std::ptr::null_mut();
    assert_eq!(cu!(cuMemHostAlloc(&raw mut pinned, 1, 0)), 0);
    let pointer = pinned as u64;
    assert_eq!(cu!(cuMemsetD8Async(pointer, 9, 1, stream.cu_stream())), 0);
    let flag = pinned.cast::<std::sync::atomic::AtomicU8>();
    // SAFETY: the driver's memory of one byte, which lives until it is freed below.
    let flag = unsafe { &*flag };
    while flag.load(std::sync::atomic::Ordering::Acquire) != 9 {
        std::thread::yield_now();
    }
    assert_eq!(cu!(cuMemFreeHost(pinned)), 0);
    let _ = sys::CUevent_flags::CU_EVENT_DEFAULT;
}

/// A stored error makes cudarc skip the record that later uses wait for.
#[test]
fn cudarc_skips_a_record_behind_a_stored_error() {
    use cudarc::driver::DevicePtrMut;
    let (device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let mut data = a.clone_htod(&[1u8; 64]).unwrap();
    a.synchronize().unwrap();
    let (pointer, guard) = data.device_ptr_mut(&a);
    set(pointer, 2, 64, &a);
    // As by a drop on another thread that failed.
    context.record_err::<()>(Err(cudarc::driver::DriverError(
        sys::CUresult::CUDA_ERROR_INVALID_VALUE,
    )));
    drop(guard);
    assert!(context.check_err().is_err());
    let _ = b.clone_dtoh(&data).unwrap();
    context.synchronize().unwrap();
    assert_eq!(kinds(&device), [ReportKind::Conflict]);
}

#[test]
fn kernels_with_their_waits_are_clean_in_a_thousand_orders() {
    use cudarc::driver::{LaunchConfig, PushKernelArg};
    let ptx = include_str!("ptx/faults.ptx");
    for seed in 0..1000 {
        let (device, context) = with(&Config::default().order(Order::Random(seed)));
        let module = context
            .load_module(cudarc::nvrtc::Ptx::from_src(ptx))
            .unwrap();
        let copy = module.load_function("copy_words").unwrap();
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let first = a.clone_htod(&[5u32; 64]).unwrap();
        let mut second = b.alloc_zeros::<u32>(64).unwrap();
        let mut third = a.alloc_zeros::<u32>(64).unwrap();
        let mut launch = b.launch_builder(&copy);
        launch.arg(&first).arg(&mut second).arg(&64u32);
        // SAFETY: the arguments are those of the kernel, and the arrays have 64 words.
        unsafe { launch.launch(LaunchConfig::for_num_elems(64)) }.unwrap();
        let mut launch = a.launch_builder(&copy);
        launch.arg(&second).arg(&mut third).arg(&64u32);
        // SAFETY: as above.
        unsafe { launch.launch(LaunchConfig::for_num_elems(64)) }.unwrap();
        assert_eq!(b.clone_dtoh(&third).unwrap(), [5; 64]);
        drop((first, second, third));
        context.synchronize().unwrap();
        assert_eq!(device.reports(), [], "seed {seed}");
        assert_eq!(device.leaks(), [], "seed {seed}");
    }
}

/// A host function may tell the host, by a channel, that what is before it is done.
#[test]
fn word_from_a_host_function_is_enough() {
    extern "C" fn tell(data: *mut std::ffi::c_void) {
        // SAFETY: the test passes a flag that outlives the stream's work.
        let flag = unsafe { &*data.cast::<std::sync::atomic::AtomicBool>() };
        flag.store(true, std::sync::atomic::Ordering::Release);
    }
    for order in ORDERS {
        let config = Config::default()
            .order(order)
            .idle(std::time::Duration::from_millis(2));
        let (device, context) = with(&config);
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let x = raw_alloc(&a, 64);
        let told = std::sync::atomic::AtomicBool::new(false);
        set(x, 1, 64, &a);
        let flag = (&raw const told).cast_mut().cast();
        assert_eq!(cu!(cuLaunchHostFunc(a.cu_stream(), Some(tell), flag)), 0);
        while !told.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
        set(x, 2, 64, &b);
        context.synchronize().unwrap();
        assert_eq!(device.reports(), [], "{order:?}");
    }
}

/// A kernel may tell the host by a word in pinned memory.
#[test]
fn word_from_a_kernel_is_enough() {
    use cudarc::driver::{LaunchConfig, PushKernelArg};
    for order in ORDERS {
        let config = Config::default()
            .order(order)
            .idle(std::time::Duration::from_millis(2));
        let (device, context) = with(&config);
        let ptx = include_str!("ptx/faults.ptx");
        let module = context
            .load_module(cudarc::nvrtc::Ptx::from_src(ptx))
            .unwrap();
        let store = module.load_function("store_at").unwrap();
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let x = raw_alloc(&a, 64);
        let mut pinned = std::ptr::null_mut();
        assert_eq!(cu!(cuMemHostAlloc(&raw mut pinned, 4, 0)), 0);
        let word = pinned as u64;
        set(x, 1, 64, &a);
        let mut launch = a.launch_builder(&store);
        launch.arg(&word);
        let one = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the parameter is the kernel's, and leads to a word of pinned memory.
        unsafe { launch.launch(one) }.unwrap();
        // SAFETY: the driver's memory of one word, which lives until it is freed below.
        let told = unsafe { &*pinned.cast::<std::sync::atomic::AtomicU32>() };
        while told.load(std::sync::atomic::Ordering::Acquire) != 7 {
            std::thread::yield_now();
        }
        set(x, 2, 64, &b);
        context.synchronize().unwrap();
        assert_eq!(device.reports(), [], "{order:?}");
        assert_eq!(cu!(cuMemFreeHost(pinned)), 0);
    }
}
