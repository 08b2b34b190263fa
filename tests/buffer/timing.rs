//! How long the device takes.

use std::time::Duration;

use gridcall::{
    Buffer, LaunchError, Timer, TimingError, cover,
    cudarc::driver::{DriverError, sys},
    timed,
};

use crate::{
    kernels::{fill, slow_add},
    support::LONG,
};

/// Far above what a launch takes, and below what `LONG` cycles do.
const SHORT: i64 = LONG / 100;

#[test]
fn what_takes_longer_is_measured_longer() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 32).unwrap();
    slow_add::load(&device).unwrap();
    let mut time = |cycles| {
        let elapsed = timed(&stream, |stream| {
            slow_add(stream, (1, 32), &mut x, 1.0, cycles)
        });
        elapsed.unwrap().wait().unwrap()
    };
    let (none, short, long) = (time(0), time(SHORT), time(LONG));
    assert!(none < short && short < long, "{none:?} {short:?} {long:?}");
    assert_eq!(x.to_vec().unwrap(), [3.0; 32]);
}

#[test]
fn a_time_is_awaited() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 32).unwrap();
    let elapsed = timed(&stream, |stream| {
        slow_add(stream, (1, 32), &mut x, 1.0, LONG)
    })
    .unwrap();
    let time = pollster::block_on(elapsed).unwrap();
    assert!(time > Duration::ZERO);
}

#[test]
fn a_timer_does_not_disturb_what_it_measured_before() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 32).unwrap();
    slow_add::load(&device).unwrap();
    let mut timer = Timer::new(&stream).unwrap();
    let mut time = |cycles| {
        timer
            .time(|stream| slow_add(stream, (1, 32), &mut x, 1.0, cycles))
            .unwrap()
    };
    let (long, none) = (time(LONG), time(0));
    let (none, long) = (none.wait().unwrap(), long.wait().unwrap());
    assert!(none < long, "{none:?} {long:?}");
    let short = time(SHORT).wait().unwrap();
    assert!(none < short && short < long, "{none:?} {short:?} {long:?}");
}

#[test]
fn rounds_are_counted_after_one() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 32).unwrap();
    let mut timer = Timer::new(&stream).unwrap();
    let rounds = timer
        .rounds(4, |stream| slow_add(stream, (1, 32), &mut x, 1.0, 1000))
        .unwrap();
    assert_eq!(rounds.times().len(), 4);
    assert!(rounds.min() <= rounds.median() && rounds.median() <= rounds.max());
    assert!(rounds.max() > Duration::ZERO);
    assert_eq!(x.to_vec().unwrap(), [5.0; 32]);
    let none = timer.rounds(0, |_| Ok::<(), LaunchError>(())).unwrap_err();
    assert_eq!(none.to_string(), "cannot measure 0 rounds");
}

#[test]
fn an_error_of_the_work_is_returned() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 32).unwrap();
    let error = timed(&stream, |stream| fill(stream, cover(33), &mut x, 1.0, 33)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fill`: the launch needs `y.len() >= n`, but y.len() is 32 and n is 33"
    );
    assert!(matches!(error, TimingError::Work(_)));
    let elapsed = timed(&stream, |stream| fill(stream, cover(32), &mut x, 1.0, 32));
    elapsed.unwrap().wait().unwrap();
    assert_eq!(x.to_vec().unwrap(), [1.0; 32]);
}

#[test]
fn a_capture_is_refused_and_lives() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut timer = Timer::new(&stream).unwrap();
    stream
        .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
    let error = timer.time(|_| Ok::<(), LaunchError>(())).unwrap_err();
    assert!(matches!(error, TimingError::Capturing), "{error}");
    stream
        .end_capture(sys::CUgraphInstantiate_flags(0))
        .unwrap();
    // A capture that begins meanwhile is as bad.
    let error = timer
        .time(|stream| {
            stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        })
        .unwrap_err();
    assert!(matches!(error, TimingError::Capturing), "{error}");
    stream
        .end_capture(sys::CUgraphInstantiate_flags(0))
        .unwrap();
    let elapsed = timer.time(|_| Ok::<(), DriverError>(())).unwrap();
    elapsed.wait().unwrap();
}
