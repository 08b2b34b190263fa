//! May a launch be made on any thread, and a task be moved between its launches?

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
};

use gridcall::{cover, cudarc::driver::sys};

use crate::{
    kernels::{fill, saxpy},
    support::ramp,
};

#[test]
fn a_fresh_thread_has_no_context_and_needs_none() {
    let device = device!();
    let kernel = fill::load(&device).unwrap();
    let stream = device.default_stream();
    let y = stream.alloc_zeros::<f32>(16).unwrap();
    let y = thread::spawn({
        let stream = stream.clone();
        move || {
            let mut y = y;
            let arguments = fill {
                y: &mut y,
                v: 1.0,
                n: 8,
            };
            kernel.launch(&stream, cover(8), arguments).unwrap();
            fill(&stream, cover(8), &mut y.slice_mut(8..), 2.0, 8).unwrap();
            y
        }
    })
    .join()
    .unwrap();
    let mut expected = [1.0; 16];
    expected[8..].fill(2.0);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_thread_whose_context_was_taken_away() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(16).unwrap();
    fill(&stream, cover(16), &mut y, 1.0, 16).unwrap();
    // SAFETY: no context is made current, which the launch must cope with.
    unsafe { sys::cuCtxSetCurrent(std::ptr::null_mut()) }
        .result()
        .unwrap();
    fill(&stream, cover(16), &mut y, 2.0, 16).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 16]);
}

#[test]
fn a_task_goes_on_on_another_thread() {
    fn is_sent<T: Send>(task: T) -> T {
        task
    }

    let device = device!();
    let context = (*device).clone();
    let task = is_sent(async move {
        let kernel = saxpy::load(&context).unwrap();
        let stream = context.new_stream().unwrap();
        let x = stream.clone_htod(&ramp(64)).unwrap();
        let mut y = stream.alloc_zeros::<f32>(64).unwrap();
        for _ in 0..3 {
            let arguments = saxpy {
                n: 64,
                a: 1.0,
                x: &x,
                y: &mut y,
            };
            kernel.launch(&stream, cover(64), arguments).unwrap();
            step_aside().await;
            saxpy(&stream, cover(64), 64, 1.0, &x, &mut y).unwrap();
        }
        stream.clone_dtoh(&y).unwrap()
    });

    let mut task = pin!(task);
    let y = loop {
        // Each step on a thread of its own.
        let step = thread::scope(|scope| {
            let task = task.as_mut();
            scope
                .spawn(move || task.poll(&mut Context::from_waker(Waker::noop())))
                .join()
                .unwrap()
        });
        if let Poll::Ready(y) = step {
            break y;
        }
    };
    let expected: Vec<f32> = ramp(64).iter().map(|x| 6.0 * x).collect();
    assert_eq!(y, expected);
}

/// Lets the executor go on elsewhere, once.
async fn step_aside() {
    let mut stepped = false;
    std::future::poll_fn(move |_| {
        if stepped {
            return Poll::Ready(());
        }
        stepped = true;
        Poll::Pending
    })
    .await;
}

#[test]
fn threads_launch_at_once_on_streams_of_their_own() {
    let device = device!();
    let x = device.default_stream().clone_htod(&ramp(1000)).unwrap();
    device.synchronize().unwrap();
    thread::scope(|scope| {
        for k in 1..=8_u8 {
            let (device, x) = (&device, &x);
            scope.spawn(move || {
                let stream = device.new_stream().unwrap();
                let mut y = stream.alloc_zeros::<f32>(1000).unwrap();
                for _ in 0..50 {
                    saxpy(&stream, cover(1000), 1000, f32::from(k), x, &mut y).unwrap();
                }
                let factor = 50.0 * f32::from(k);
                let expected: Vec<f32> = ramp(1000).iter().map(|x| factor * x).collect();
                assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
            });
        }
    });
}

#[test]
fn threads_write_halves_of_one_buffer() {
    let device = device!();
    let stream = device.default_stream();
    let mut buffer = stream.alloc_zeros::<f32>(512).unwrap();
    let streams = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let (left, right) = buffer.split_at_mut(256);
    thread::scope(|scope| {
        for ((mut half, stream), v) in [left, right].into_iter().zip(&streams).zip([1.0, 2.0]) {
            scope.spawn(move || {
                for _ in 0..20 {
                    fill(stream, cover(256), &mut half, v, 256).unwrap();
                }
            });
        }
    });
    for stream in &streams {
        stream.synchronize().unwrap();
    }
    let mut expected = [1.0; 512];
    expected[256..].fill(2.0);
    assert_eq!(stream.clone_dtoh(&buffer).unwrap(), expected);
}
