//! Does a launch run after the owner's work and before the owner's next, without the host waiting?

use std::sync::Arc;

use gridcall::{
    Order, Tensor, cover,
    cudarc::driver::{
        CudaContext, CudaStream, result,
        sys::{CUgraphInstantiate_flags, CUstreamCaptureMode},
    },
};

use crate::{
    kernels::{copy, slow_add, slow_copy},
    made::{Export, Released, on},
    support::{LONG, Latch, ends, is_busy},
};

const N: i32 = 256;
const LEN: usize = 256;

/// Zeros that another library works on.
struct Foreign {
    stream: Arc<CudaStream>,
    tensor: Tensor,
    /// The same memory as its owner sees it.
    own: Tensor,
}

impl Foreign {
    fn new(stream: &Arc<CudaStream>, order: impl Fn(&CudaStream) -> Order) -> Foreign {
        let memory = stream.alloc_zeros::<f32>(LEN).unwrap();
        stream.synchronize().unwrap();
        let own = Tensor::from_slice(memory, &[LEN]).unwrap();
        // SAFETY: the memory outlives it; what the order is, is what the tests are about.
        let tensor = unsafe {
            Tensor::from_parts(
                own.pointer(),
                gridcall::DType::F32,
                &[LEN],
                None,
                own.place(),
                order(stream),
                Box::new(()),
            )
        };
        Foreign {
            stream: stream.clone(),
            tensor: tensor.unwrap(),
            own,
        }
    }

    /// The owner adds 1 to all elements, which takes long.
    fn work(&mut self) {
        slow_add(&self.stream, (1, 256), &mut self.own, 1.0, LONG).unwrap();
    }
}

/// Two streams of each manner that one can wait for the other in: the default stream of old and those
/// made to wait for it need no events.
fn pairs(device: &Arc<CudaContext>) -> Vec<[Arc<CudaStream>; 2]> {
    let blocking = || {
        device.bind_to_thread().unwrap();
        let stream = result::stream::create(result::stream::StreamKind::Default).unwrap();
        // SAFETY: the stream is never destroyed.
        unsafe { device.wrap_borrowed_stream(stream) }
    };
    let other = || device.new_stream().unwrap();
    let legacy = || device.default_stream();
    let streams = [
        [other(), other()],
        [legacy(), blocking()],
        [legacy(), other()],
        [blocking(), blocking()],
        [blocking(), other()],
    ];
    let turned = |[one, another]: [Arc<CudaStream>; 2]| [another, one];
    streams
        .iter()
        .cloned()
        .map(turned)
        .chain(streams.clone())
        .collect()
}

#[test]
fn a_launch_waits_for_the_owner() {
    let device = device!();
    for [ours, theirs] in pairs(&device) {
        let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
        let mut x = Foreign::new(&theirs, on);
        x.work();
        copy(&ours, cover(N), &x.tensor, &mut out, N).unwrap();
        assert_eq!(ours.clone_dtoh(&out).unwrap(), [1.0; LEN]);
    }
}

#[test]
fn the_owner_waits_for_a_launch() {
    let device = device!();
    for [ours, theirs] in pairs(&device) {
        let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
        let mut x = Foreign::new(&theirs, on);
        slow_copy(&ours, cover(N), &x.tensor, &mut out, N, LONG).unwrap();
        slow_add(&theirs, (1, 256), &mut x.own, 1.0, 0).unwrap();
        assert_eq!(ours.clone_dtoh(&out).unwrap(), [0.0; LEN]);
    }
}

/// What the tests above would find if a launch did not wait: without a stream of the owner's, there
/// is nothing to wait for.
#[test]
fn without_the_owners_stream_a_launch_does_not_wait() {
    let device = device!(alone);
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
    ours.synchronize().unwrap();
    let mut latch = Latch::new(&device);
    let mut seen = theirs.alloc_zeros::<i32>(1).unwrap();
    let mut x = Foreign::new(&theirs, |_| Order::Settled);
    // Loaded before anything runs, since loading may wait for what does.
    copy::load(&device).unwrap();
    slow_add::load(&device).unwrap();
    latch.hold(&theirs, &mut seen);
    slow_add(&theirs, (1, 256), &mut x.own, 1.0, 0).unwrap();
    copy(&ours, cover(N), &x.tensor, &mut out, N).unwrap();
    assert!(
        ends(&ours),
        "the launch waited for a stream that nobody named"
    );
    assert_eq!(ours.clone_dtoh(&out).unwrap(), [0.0; LEN]);
}

#[test]
fn two_owners_on_two_streams_are_ordered_in_one_launch() {
    let device = device!();
    let ours = device.new_stream().unwrap();
    let (one, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let (mut x, mut y) = (Foreign::new(&one, on), Foreign::new(&other, on));
    for round in 1..=1000_u16 {
        let cycles = 20_000;
        slow_add(&one, (1, 256), &mut x.own, 1.0, cycles).unwrap();
        slow_add(&other, (1, 256), &mut y.own, 1.0, cycles).unwrap();
        crate::kernels::saxpy(&ours, cover(N), 256, 1.0, &x.tensor, &mut y.tensor).unwrap();
        if round % 100 == 0 {
            let mut out = other.alloc_zeros::<f32>(LEN).unwrap();
            copy(&other, cover(N), &y.own, &mut out, N).unwrap();
            // y gains 1 a round, and x, which is the round.
            let expected = f32::from(round) + f32::from(round) * (f32::from(round) + 1.0) / 2.0;
            assert_eq!(
                other.clone_dtoh(&out).unwrap(),
                [expected; LEN],
                "round {round}"
            );
        }
    }
}

#[test]
fn our_own_launches_on_two_streams_are_ordered_without_an_owner() {
    let device = device!();
    let (one, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Foreign::new(&one, |_| Order::Settled);
    let mut out = other.alloc_zeros::<f32>(LEN).unwrap();
    slow_add(&one, (1, 256), &mut x.tensor, 1.0, LONG).unwrap();
    copy(&other, cover(N), &x.tensor, &mut out, N).unwrap();
    assert_eq!(other.clone_dtoh(&out).unwrap(), [1.0; LEN]);
}

#[test]
fn the_host_waits_for_nothing_and_the_owner_is_kept() {
    let device = device!(alone);
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
    copy::load(&device).unwrap();
    for order in [on(&ours), on(&theirs), Order::Settled] {
        let released = Released::default();
        let memory = theirs.alloc_zeros::<f32>(LEN).unwrap();
        theirs.synchronize().unwrap();
        let x = Export::f32(&[256])
            .released_by(memory, order, &released)
            .unwrap();
        let mut latch = Latch::new(&device);
        let mut seen = ours.alloc_zeros::<i32>(1).unwrap();
        latch.hold(&ours, &mut seen);
        copy(&ours, cover(N), &x, &mut out, N).unwrap();
        drop(x);
        assert!(is_busy(&ours));
        assert_eq!(released.count(), 0, "{order:?}");
        latch.release();
        released.wait_for(1);
        ours.synchronize().unwrap();
    }
}

#[test]
fn many_launches_let_go_of_all_owners() {
    let device = device!();
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let released = Released::default();
    let mut out = ours.alloc_zeros::<f32>(4).unwrap();
    let rounds = 2000;
    for round in 0..rounds {
        let memory = theirs.alloc_zeros::<f32>(4).unwrap();
        let order = [on(&ours), on(&theirs), Order::Settled][round % 3];
        theirs.synchronize().unwrap();
        let x = Export::f32(&[4])
            .released_by(memory, order, &released)
            .unwrap();
        if round % 5 != 0 {
            copy(&ours, cover(4), &x, &mut out, 4).unwrap();
        } else {
            // Refused: five are not there.
            assert!(copy(&ours, cover(5), &x, &mut out, 5).is_err());
        }
    }
    released.wait_for(rounds);
}

#[test]
fn a_tensor_dropped_while_its_stream_is_captured_is_not_let_go_early() {
    let device = device!(alone);
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut latch = Latch::new(&device);
    let mut seen = ours.alloc_zeros::<i32>(1).unwrap();
    let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
    copy::load(&device).unwrap();
    let memory = theirs.alloc_zeros::<f32>(LEN).unwrap();
    device.synchronize().unwrap();
    let released = Released::default();
    let tensor = Export::f32(&[256])
        .released_by(memory, on(&theirs), &released)
        .unwrap();
    latch.hold(&ours, &mut seen);
    copy(&ours, cover(N), &tensor, &mut out, N).unwrap();
    theirs
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
    drop(tensor);
    assert_eq!(released.count(), 0);
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    drop(theirs.end_capture(flags).unwrap());
    latch.release();
    assert!(ends(&ours));
    // Others are let go as ever.
    let memory = theirs.alloc_zeros::<f32>(LEN).unwrap();
    let other = Released::default();
    let tensor = Export::f32(&[256])
        .released_by(memory, on(&theirs), &other)
        .unwrap();
    copy(&ours, cover(N), &tensor, &mut out, N).unwrap();
    drop(tensor);
    other.wait_for(1);
}

#[test]
fn a_launch_is_not_drawn_into_the_capture_of_an_owner() {
    let device = device!(alone);
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let x = Foreign::new(&theirs, on);
    let mut out = ours.alloc_zeros::<f32>(LEN).unwrap();
    copy::load(&device).unwrap();
    device.synchronize().unwrap();
    theirs
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
    let error = copy(&ours, cover(N), &x.tensor, &mut out, N).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy`: argument `input` (parameter 0, &[f32]): its owner's stream is being captured \
         into a graph, which would draw in all that waits for it; launch before the capture, or after it"
    );
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    theirs.end_capture(flags).unwrap();
    copy(&ours, cover(N), &x.tensor, &mut out, N).unwrap();
    assert_eq!(ours.clone_dtoh(&out).unwrap(), [0.0; LEN]);
}
