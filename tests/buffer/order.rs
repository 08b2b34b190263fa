//! Uses on several streams come in the order of the program.

use std::{sync::Arc, thread};

use gridcall::{
    AsDeviceView, Buffer, StreamRef, cover,
    cudarc::driver::{CudaContext, CudaStream},
};

use crate::{
    kernels::{copy, fill, scale, slow_add, slow_copy},
    support::{LONG, Latch, ends, is_busy, say},
};

const N: usize = 1024;

fn streams<const S: usize>(context: &Arc<CudaContext>) -> [Arc<CudaStream>; S] {
    [(); S].map(|()| context.new_stream().unwrap())
}

/// y ← y + 1, after a long time.
fn add_late(stream: &CudaStream, y: &mut Buffer<f32>) {
    slow_add(stream, (4, 256), y, 1.0, LONG).unwrap();
}

/// out ← x, as x is after a long time.
fn copy_late(stream: &CudaStream, x: &Buffer<f32>, out: &mut Buffer<f32>) {
    slow_copy(stream, cover(N), x, out, 1024, LONG).unwrap();
}

fn ones(stream: &Arc<CudaStream>) -> Buffer<f32> {
    Buffer::from_slice(stream, &[1.0; N]).unwrap()
}

#[test]
fn a_read_waits_for_a_write() {
    let device = device!();
    let [a, b] = streams(&device);
    let (mut x, mut y) = (ones(&a), ones(&b));
    add_late(&a, &mut x);
    copy(&b, cover(N), &x, &mut y, 1024).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; N]);
}

#[test]
fn a_write_waits_for_reads() {
    let device = device!();
    let [a, b, c] = streams(&device);
    let (mut x, mut y, mut z) = (ones(&c), ones(&a), ones(&b));
    copy_late(&a, &x, &mut y);
    copy_late(&b, &x, &mut z);
    fill(&c, cover(N), &mut x, 9.0, 1024).unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0; N]);
    assert_eq!(z.to_vec().unwrap(), [1.0; N]);
    assert_eq!(x.to_vec().unwrap(), [9.0; N]);
}

#[test]
fn a_write_waits_for_a_write() {
    let device = device!();
    let [a, b] = streams(&device);
    let mut x = ones(&a);
    add_late(&a, &mut x);
    scale(&b, cover(N), &mut x, 10.0, 1024).unwrap();
    add_late(&a, &mut x);
    assert_eq!(x.to_vec().unwrap(), [21.0; N]);
}

#[test]
fn a_drop_waits_for_all_readers() {
    // So large that what is allocated next is the same memory, if it is free.
    const LARGE: usize = 3 << 20;
    let device = device!();
    let [a, b, c] = streams(&device);
    let x = Buffer::from_slice(&c, &vec![1.0; LARGE]).unwrap();
    let address = x.describe().unwrap().pointer();
    let (mut y, mut z) = (ones(&a), ones(&b));
    copy_late(&a, &x, &mut y);
    copy_late(&b, &x, &mut z);
    drop(x);
    let mut others: Vec<_> = (0..4)
        .map(|_| Buffer::<f32>::zeroed(&c, LARGE).unwrap())
        .collect();
    let again = others
        .iter()
        .any(|other| other.describe().unwrap().pointer() == address);
    for other in &mut others {
        fill(&c, cover(N), other, 7.0, 1024).unwrap();
    }
    assert_eq!(y.to_vec().unwrap(), [1.0; N]);
    assert_eq!(z.to_vec().unwrap(), [1.0; N]);
    if !again {
        // The emulator never uses an address again, and reports each use of freed memory itself; a
        // driver's pool may have other memory at hand.
        say(&format!("{}: the memory was not used again", this_test!()));
    }
}

#[test]
fn a_drop_does_not_wait_on_the_host() {
    let device = device!(alone);
    let [a, b] = streams(&device);
    let x = ones(&b);
    let mut y = ones(&a);
    copy::load(&device).unwrap();
    let mut latch = Latch::new(&device);
    let mut seen = b.alloc_zeros::<i32>(1).unwrap();
    fill(&a, cover(N), &mut y, 0.0, 1024).unwrap();
    a.synchronize().unwrap();
    latch.hold(&a, &mut seen);
    copy(&a, cover(N), &x, &mut y, 1024).unwrap();
    drop(x);
    drop(y);
    assert!(is_busy(&a));
    latch.release();
    assert!(ends(&a));
}

#[test]
fn a_stream_outlives_what_it_did() {
    let device = device!();
    let [a] = streams(&device);
    let mut x = ones(&a);
    let mut y = ones(&a);
    {
        let [b] = streams(&device);
        // Known by its `Arc`, so that it is held.
        drop(ones(&b));
        add_late(&b, &mut x);
    }
    copy(&a, cover(N), &x, &mut y, 1024).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; N]);
}

#[test]
fn a_stream_that_no_buffer_knows_is_noted() {
    let device = device!();
    let [a] = streams(&device);
    let mut x = ones(&a);
    {
        let [b] = streams(&device);
        add_late(&b, &mut x);
        add_late(&b, &mut x);
    }
    let mut y = ones(&a);
    copy(&a, cover(N), &x, &mut y, 1024).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

#[test]
fn the_per_thread_stream_is_another_on_each_thread() {
    let device = device!();
    let stream = device.per_thread_stream();
    let mut x = ones(&stream);
    add_late(&stream, &mut x);
    thread::scope(|scope| {
        scope.spawn(|| {
            scale(&stream, cover(N), &mut x, 10.0, 1024).unwrap();
            add_late(&stream, &mut x);
        });
    });
    scale(&stream, cover(N), &mut x, 2.0, 1024).unwrap();
    assert_eq!(x.to_vec().unwrap(), [42.0; N]);
}

#[test]
fn a_borrowed_stream_is_ordered() {
    let device = device!();
    let [a, b] = streams(&device);
    // SAFETY: `b` outlives it, and nothing else uses `b`.
    let borrowed = unsafe { device.wrap_borrowed_stream(b.cu_stream()) };
    let mut x = ones(&a);
    add_late(&borrowed, &mut x);
    scale(&a, cover(N), &mut x, 10.0, 1024).unwrap();
    add_late(&b, &mut x);
    scale(&borrowed, cover(N), &mut x, 10.0, 1024).unwrap();
    assert_eq!(x.to_vec().unwrap(), [210.0; N]);
}

#[test]
fn both_handles_of_the_legacy_stream_are_one() {
    let device = device!();
    let [a] = streams(&device);
    let legacy = device.default_stream();
    // SAFETY: it is the legacy stream, which is always there.
    let other = unsafe { device.wrap_borrowed_stream(1 as _) };
    let mut x = ones(&legacy);
    add_late(&other, &mut x);
    scale(&a, cover(N), &mut x, 10.0, 1024).unwrap();
    add_late(&other, &mut x);
    scale(&legacy, cover(N), &mut x, 2.0, 1024).unwrap();
    assert_eq!(x.to_vec().unwrap(), [42.0; N]);
}

#[test]
fn more_readers_than_are_told_apart_at_once() {
    let device = device!();
    let all: [_; 7] = streams(&device);
    let mut x = ones(&all[0]);
    for _ in 0..3 {
        add_late(&all[0], &mut x);
        let mut copies: Vec<_> = all.iter().map(ones).collect();
        for (stream, out) in all.iter().zip(&mut copies) {
            copy_late(stream, &x, out);
        }
        let expected = x.to_vec().unwrap();
        fill(&all[3], cover(N), &mut x, 0.0, 1024).unwrap();
        for copy in &copies {
            assert_eq!(copy.to_vec().unwrap(), expected);
        }
        scale(&all[5], cover(N), &mut x, 2.0, 1024).unwrap();
    }
}

#[test]
fn readers_on_threads() {
    let device = device!();
    let [a] = streams(&device);
    let mut x = ones(&a);
    add_late(&a, &mut x);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let [stream] = streams(&device);
                let mut y = ones(&stream);
                for _ in 0..50 {
                    copy(&stream, cover(N), &x, &mut y, 1024).unwrap();
                }
                assert_eq!(y.to_vec().unwrap(), [2.0; N]);
            });
        }
    });
    fill(&a, cover(N), &mut x, 5.0, 1024).unwrap();
    assert_eq!(x.to_vec().unwrap(), [5.0; N]);
}

#[test]
fn a_forgotten_guard_forgets_no_use() {
    let device = device!();
    let [a, b] = streams(&device);
    let known = ones(&b);
    let (mut x, mut y) = (ones(&a), ones(&a));
    for known in [Some(known), None] {
        let [fresh] = streams(&device);
        let stream = if known.is_some() { &b } else { &fresh };
        // A launch whose guard is lost: the kernel is enqueued under it.
        std::mem::forget(x.acquire(StreamRef::from(&**stream)).unwrap());
        copy_late(stream, &x, &mut y);
        fill(&a, cover(N), &mut x, 9.0, 1024).unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0; N]);
        fill(&a, cover(N), &mut x, 1.0, 1024).unwrap();
    }
    drop(x);
}

#[test]
fn forgotten_buffers_leak() {
    let device = device!();
    let [a, b] = streams(&device);
    let mut x = ones(&a);
    add_late(&b, &mut x);
    std::mem::forget(x);
    drop(b);
    a.synchronize().unwrap();
}
