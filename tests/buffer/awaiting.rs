//! Futures of what is enqueued.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use gridcall::{Buffer, Pinned, after, after_event, cover};

use crate::{
    kernels::{fill, slow_add, slow_copy},
    support::{LONG, Latch, ramp},
};

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes that it was dropped.
struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn soon(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn what_is_owned_comes_back_when_the_device_is_done() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 1024).unwrap();
    slow_add(&stream, (4, 256), &mut x, 1.0, LONG).unwrap();
    let future = after(&stream, x).unwrap();
    let x = pollster::block_on(future).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1.0; 1024]);
}

#[test]
fn a_future_is_pending_and_wakes_once() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut seen = stream.alloc_zeros::<i32>(1).unwrap();
    let mut latch = Latch::new(&device);
    latch.hold(&stream, &mut seen);
    let mut future = pin!(after(&stream, 5).unwrap());
    let (first, second) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    for wakes in [&first, &second, &second] {
        let waker = Waker::from(wakes.clone());
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    assert!(!future.is_done().unwrap());
    latch.release();
    assert!(soon(|| second.0.load(Ordering::Relaxed) > 0));
    assert_eq!(first.0.load(Ordering::Relaxed), 0);
    let waker = Waker::from(second);
    let mut context = Context::from_waker(&waker);
    assert!(matches!(
        future.as_mut().poll(&mut context),
        Poll::Ready(Ok(5))
    ));
    // Once more is an error, and no panic.
    assert!(matches!(
        future.as_mut().poll(&mut context),
        Poll::Ready(Err(_))
    ));
}

#[test]
fn waiting_blocks() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 1024).unwrap();
    slow_add(&stream, (4, 256), &mut x, 1.0, LONG).unwrap();
    let x = after(&stream, x).unwrap().wait().unwrap();
    assert!(after(&stream, ()).unwrap().is_done().unwrap());
    assert_eq!(x.to_vec().unwrap(), [1.0; 1024]);
}

#[test]
fn an_event_is_awaited_alone() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut seen = stream.alloc_zeros::<i32>(1).unwrap();
    let mut latch = Latch::new(&device);
    let early = stream.record_event(None).unwrap();
    latch.hold(&stream, &mut seen);
    let late = stream.record_event(None).unwrap();
    let late = after_event(late, 2);
    assert_eq!(pollster::block_on(after_event(early, 1)).unwrap(), 1);
    assert!(!late.is_done().unwrap());
    latch.release();
    assert_eq!(pollster::block_on(late).unwrap(), 2);
}

#[test]
fn a_dropped_future_keeps_what_it_owns_until_the_device_is_done() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut seen = stream.alloc_zeros::<i32>(1).unwrap();
    for polled in [false, true] {
        let dropped = Arc::new(AtomicBool::new(false));
        let mut latch = Latch::new(&device);
        latch.hold(&stream, &mut seen);
        let mut future = after(&stream, Noted(dropped.clone())).unwrap();
        if polled {
            let mut context = Context::from_waker(Waker::noop());
            assert!(pin!(&mut future).poll(&mut context).is_pending());
        }
        drop(future);
        thread::sleep(Duration::from_millis(20));
        assert!(!dropped.load(Ordering::Relaxed));
        latch.release();
        assert!(soon(|| dropped.load(Ordering::Relaxed)));
    }
}

#[test]
fn a_forgotten_future_keeps_what_it_owns() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    std::mem::forget(after(&stream, Noted(dropped.clone())).unwrap());
    stream.synchronize().unwrap();
    assert!(!dropped.load(Ordering::Relaxed));
}

#[test]
fn a_panic_in_a_destructor_disturbs_no_other() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose, in a destructor");
        }
    }
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut seen = stream.alloc_zeros::<i32>(1).unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let mut latch = Latch::new(&device);
    latch.hold(&stream, &mut seen);
    drop(after(&stream, Panics).unwrap());
    drop(after(&stream, Noted(dropped.clone())).unwrap());
    latch.release();
    assert!(soon(|| dropped.load(Ordering::Relaxed)));
}

#[test]
fn many_futures_need_one_thread() {
    let device = device!();
    let streams: Vec<_> = (0..8).map(|_| device.new_stream().unwrap()).collect();
    let futures: Vec<_> = (0..400_u16)
        .map(|i| {
            let stream = &streams[usize::from(i) % 8];
            let mut x = Buffer::<f32>::zeroed(stream, 256).unwrap();
            slow_add(stream, (1, 256), &mut x, f32::from(i), 200_000).unwrap();
            after(stream, x).unwrap()
        })
        .collect();
    pollster::block_on(async {
        for (i, future) in (0..400_u16).zip(futures) {
            let x = future.await.unwrap();
            assert_eq!(x.slice(..1).unwrap().to_vec().unwrap(), [f32::from(i)]);
        }
    });
    #[cfg(target_os = "linux")]
    {
        let named = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter(|task| {
                let name = task.as_ref().unwrap().path().join("comm");
                std::fs::read_to_string(name).is_ok_and(|name| name.trim() == "gridcall-await")
            });
        assert_eq!(named.count(), 1);
    }
}

#[test]
fn copies_own_their_pinned_memory() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    let mut y = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    // Behind something slow, so that it is really under way.
    slow_add(&a, (4, 256), &mut x, 1.0, LONG).unwrap();
    let up = x
        .upload(&a, Pinned::from_slice(&device, &ramp(1024)).unwrap())
        .unwrap();
    slow_copy(&b, cover(1024), &x, &mut y, 1024, 1000).unwrap();
    let down = y
        .download(&b, Pinned::zeroed(&device, 1024).unwrap())
        .unwrap();
    fill(&a, cover(1024), &mut y, 0.0, 1024).unwrap();
    // Dropping the futures, and so the pinned memory, is safe at any time.
    drop(
        x.download(&b, Pinned::zeroed(&device, 1024).unwrap())
            .unwrap(),
    );
    assert_eq!(*pollster::block_on(down).unwrap(), *ramp(1024));
    assert_eq!(*up.wait().unwrap(), *ramp(1024));
    assert!(x.upload(&a, Pinned::zeroed(&device, 3).unwrap()).is_err());
    assert!(x.download(&a, Pinned::zeroed(&device, 3).unwrap()).is_err());
}
