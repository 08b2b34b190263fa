//! Programs that lack one wait, each beside the same program with it: kernels, graphs, pinned and managed
//! memory, events and frees. The first is reported whatever order ran, the second never.

mod common;

use std::ptr::null_mut;
use std::sync::Arc;

use common::{cu, kinds, with};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gridcall_emulator::ReportKind::{self, Conflict, UseAfterFree, UseBeforeAllocation};
use gridcall_emulator::{Config, Order};

const WORDS: u32 = 64;
const BYTES: usize = 4 * WORDS as usize;

/// Two streams, and memory that they share: zeros, which both have waited for.
struct Shared {
    context: Arc<CudaContext>,
    copy: CudaFunction,
    a: Arc<CudaStream>,
    b: Arc<CudaStream>,
    x: u64,
    y: u64,
    z: u64,
    pinned: u64,
}

impl Shared {
    fn new(context: &Arc<CudaContext>) -> Self {
        let ptx = Ptx::from_src(include_str!("ptx/faults.ptx"));
        let module = context.load_module(ptx).unwrap();
        let (owner, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let memory = [(); 3].map(|()| {
            let mut pointer = 0;
            assert_eq!(
                cu!(cuMemAllocAsync(&raw mut pointer, BYTES, owner.cu_stream())),
                0
            );
            set(&owner, pointer);
            pointer
        });
        let mut pinned = null_mut();
        assert_eq!(cu!(cuMemHostAlloc(&raw mut pinned, BYTES, 0)), 0);
        set(&owner, pinned as u64);
        owner.synchronize().unwrap();
        Self {
            context: Arc::clone(context),
            copy: module.load_function("copy_words").unwrap(),
            a: owner,
            b: other,
            x: memory[0],
            y: memory[1],
            z: memory[2],
            pinned: pinned as u64,
        }
    }

    /// Copies by a kernel.
    fn kernel(&self, stream: &CudaStream, to: u64, from: u64) {
        let mut launch = stream.launch_builder(&self.copy);
        launch.arg(&from).arg(&to).arg(&WORDS);
        // SAFETY: the arguments are those of the kernel; that they may be stale is what the tests ask.
        unsafe { launch.launch(LaunchConfig::for_num_elems(WORDS)) }.unwrap();
    }

    fn event(&self) -> CudaEvent {
        self.context.new_event(None).unwrap()
    }

    /// Lets `b` wait for `a`, in the program that is right.
    fn order(&self, right: bool) {
        if right {
            self.b.join(&self.a).unwrap();
        }
    }
}

fn set(stream: &CudaStream, pointer: u64) {
    assert_eq!(
        cu!(cuMemsetD8Async(pointer, 0, BYTES, stream.cu_stream())),
        0
    );
}

fn to_pinned(stream: &CudaStream, pinned: u64, from: u64) {
    let to = pinned as *mut std::ffi::c_void;
    assert_eq!(
        cu!(cuMemcpyDtoHAsync_v2(to, from, BYTES, stream.cu_stream())),
        0
    );
}

fn from_pinned(stream: &CudaStream, to: u64, pinned: u64) {
    let from = pinned as *const std::ffi::c_void;
    assert_eq!(
        cu!(cuMemcpyHtoDAsync_v2(to, from, BYTES, stream.cu_stream())),
        0
    );
}

fn free(stream: &CudaStream, pointer: u64) {
    assert_eq!(cu!(cuMemFreeAsync(pointer, stream.cu_stream())), 0);
}

/// Runs the program without its wait in a few orders, and with it in many.
#[track_caller]
fn check(kind: ReportKind, program: impl Fn(&Shared, bool)) {
    let run = |order, right| {
        let idle = std::time::Duration::from_secs(600);
        let (device, context) = with(&Config::default().order(order).idle(idle));
        program(&Shared::new(&context), right);
        let _ = context.synchronize();
        let expected = (!right).then_some(&kind);
        let reports = device.reports();
        assert_eq!(
            kinds(&device).first(),
            expected,
            "{order:?}, right: {right}: {reports:?}"
        );
    };
    let fixed = [Order::Lazy, Order::Eager];
    for order in fixed.into_iter().chain((0..4).map(Order::Random)) {
        run(order, false);
    }
    for order in fixed.into_iter().chain((0..60).map(Order::Random)) {
        run(order, true);
    }
}

#[test]
fn a_kernel_reads_what_another_writes() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        s.order(right);
        s.kernel(&s.b, s.z, s.y);
    });
}

#[test]
fn a_memset_under_a_kernel_that_writes() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        s.order(right);
        set(&s.b, s.y);
    });
}

#[test]
fn a_memset_under_a_kernel_that_reads() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        s.order(right);
        set(&s.b, s.x);
    });
}

#[test]
fn a_copy_that_waits_for_nothing() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        if right {
            s.a.synchronize().unwrap();
        }
        let mut back = [0u8; BYTES];
        let to = back.as_mut_ptr().cast();
        assert_eq!(cu!(cuMemcpyDtoH_v2(to, s.y, BYTES)), 0);
    });
}

#[test]
fn the_writer_waits_for_the_reader() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        let (first, second) = if right { (&s.a, &s.b) } else { (&s.b, &s.a) };
        second.join(first).unwrap();
        s.kernel(&s.b, s.z, s.y);
    });
}

#[test]
fn a_wait_before_the_record() {
    check(Conflict, |s, right| {
        let event = s.event();
        s.kernel(&s.a, s.y, s.x);
        if right {
            event.record(&s.a).unwrap();
        }
        s.b.wait(&event).unwrap();
        event.record(&s.a).unwrap();
        s.kernel(&s.b, s.z, s.y);
    });
}

#[test]
fn a_wait_behind_the_use() {
    check(Conflict, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        s.order(right);
        s.kernel(&s.b, s.z, s.y);
        s.order(!right);
    });
}

#[test]
fn an_event_between_two_writes() {
    check(Conflict, |s, right| {
        let event = s.event();
        set(&s.a, s.y);
        event.record(&s.a).unwrap();
        s.kernel(&s.a, s.y, s.x);
        if right {
            event.record(&s.a).unwrap();
        }
        s.b.wait(&event).unwrap();
        s.kernel(&s.b, s.z, s.y);
    });
}

#[test]
fn the_host_waits_for_an_event_too_early() {
    check(Conflict, |s, right| {
        let event = s.event();
        event.record(&s.a).unwrap();
        s.kernel(&s.a, s.y, s.x);
        if right {
            event.record(&s.a).unwrap();
        }
        event.synchronize().unwrap();
        s.kernel(&s.b, s.z, s.y);
    });
}

#[test]
fn a_pinned_buffer_reused_under_a_copy() {
    check(Conflict, |s, right| {
        from_pinned(&s.a, s.x, s.pinned);
        s.order(right);
        to_pinned(&s.b, s.pinned, s.y);
    });
}

#[test]
fn a_pinned_buffer_sent_on_before_it_is_filled() {
    check(Conflict, |s, right| {
        to_pinned(&s.a, s.pinned, s.x);
        s.order(right);
        from_pinned(&s.b, s.y, s.pinned);
    });
}

#[test]
fn a_call_that_reads_pinned_memory_before_the_event() {
    check(Conflict, |s, right| {
        to_pinned(&s.a, s.pinned, s.x);
        let event = s.event();
        event.record(&s.a).unwrap();
        if right {
            event.synchronize().unwrap();
        }
        let from = s.pinned as *const std::ffi::c_void;
        assert_eq!(cu!(cuMemcpyHtoD_v2(s.y, from, BYTES)), 0);
    });
}

#[test]
fn managed_memory_written_under_its_reader() {
    check(Conflict, |s, right| {
        let mut managed = 0;
        assert_eq!(cu!(cuMemAllocManaged(&raw mut managed, BYTES, 1)), 0);
        set(&s.a, managed);
        s.a.synchronize().unwrap();
        s.kernel(&s.a, s.x, managed);
        s.order(right);
        s.kernel(&s.b, managed, s.y);
    });
}

#[test]
fn a_graph_beside_a_stream() {
    check(Conflict, |s, right| {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        s.a.begin_capture(mode).unwrap();
        s.kernel(&s.a, s.y, s.x);
        let graph = s.a.end_capture(sys::CUgraphInstantiate_flags(0));
        let graph = graph.unwrap().unwrap();
        graph.launch().unwrap();
        s.order(right);
        set(&s.b, s.y);
    });
}

#[test]
fn a_free_under_a_kernel_of_another_stream() {
    check(UseAfterFree, |s, right| {
        s.kernel(&s.a, s.y, s.x);
        s.order(right);
        free(&s.b, s.x);
    });
}

#[test]
fn a_free_behind_a_stream_that_is_destroyed() {
    check(UseAfterFree, |s, right| {
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        assert_eq!(cu!(cuStreamCreate(&raw mut stream, flags)), 0);
        assert_eq!(cu!(cuMemsetD8Async(s.x, 1, BYTES, stream)), 0);
        if right {
            assert_eq!(cu!(cuStreamSynchronize(stream)), 0);
        }
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), 0);
        free(&s.b, s.x);
    });
}

#[test]
fn a_kernel_on_another_stream_than_the_free() {
    check(UseAfterFree, |s, right| {
        if right {
            s.kernel(&s.b, s.z, s.x);
            s.a.join(&s.b).unwrap();
        }
        free(&s.a, s.x);
        if !right {
            s.kernel(&s.b, s.z, s.x);
        }
    });
}

#[test]
fn a_kernel_on_another_stream_than_the_allocation() {
    check(UseBeforeAllocation, |s, right| {
        let mut fresh = 0;
        assert_eq!(
            cu!(cuMemAllocAsync(&raw mut fresh, BYTES, s.a.cu_stream())),
            0
        );
        s.order(right);
        s.kernel(&s.b, fresh, s.x);
    });
}

#[test]
fn arrays_whose_tracking_is_off() {
    check(Conflict, |s, right| {
        if !right {
            // SAFETY: the streams are ordered by hand, or not at all, which the driver reports.
            unsafe { s.context.disable_event_tracking() };
        }
        let mut data = s.a.alloc_zeros::<u32>(64).unwrap();
        s.a.synchronize().unwrap();
        s.a.memset_zeros(&mut data).unwrap();
        s.b.memset_zeros(&mut data).unwrap();
        s.context.synchronize().unwrap();
    });
}
