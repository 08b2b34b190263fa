//! Do kernels on several streams run in the order of what they read and write, and frees after them?
//!
//! Kernels that take long stand where a missing wait would show. What is ordered passes whatever the
//! time they take.

use std::{sync::Arc, thread};

use gridcall::{
    LaunchErrorKind, cover,
    cudarc::driver::{CudaContext, CudaStream, DriverError, sys::CUresult},
};

use crate::{
    kernels::{copy, copy4, count_threads, fill, saxpy, slow_add, slow_copy, spin_flag},
    support::{Device, LONG, Latch, ends, is_busy},
};

/// Few enough that all their threads run at once.
const N: usize = 1 << 14;
const COUNT: i32 = 1 << 14;
const BLOCKS: u32 = (1 << 14) / 256;

fn streams<const K: usize>(device: &Device) -> [Arc<CudaStream>; K] {
    std::array::from_fn(|_| device.new_stream().unwrap())
}

#[test]
fn an_array_is_freed_after_both_of_two_readers() {
    let device = device!();
    let [owner, slow, fast] = streams(&device);
    let x = owner.clone_htod(&vec![1.0_f32; N]).unwrap();
    let mut first = slow.alloc_zeros::<f32>(N).unwrap();
    let mut second = fast.alloc_zeros::<f32>(N).unwrap();
    slow_copy(&slow, cover(N), &x, &mut first, COUNT, LONG).unwrap();
    copy(&fast, cover(N), &x, &mut second, COUNT).unwrap();
    drop(x);
    // Likely the same memory, cleared as soon as it is free.
    let z = owner.alloc_zeros::<f32>(N).unwrap();
    assert_eq!(owner.clone_dtoh(&z).unwrap(), vec![0.0; N]);
    assert_eq!(slow.clone_dtoh(&first).unwrap(), vec![1.0; N]);
    assert_eq!(fast.clone_dtoh(&second).unwrap(), vec![1.0; N]);
}

#[test]
fn an_array_is_overwritten_after_both_of_two_readers() {
    let device = device!();
    let [owner, slow, fast] = streams(&device);
    let mut x = owner.clone_htod(&vec![1.0_f32; N]).unwrap();
    let mut first = slow.alloc_zeros::<f32>(N).unwrap();
    let mut second = fast.alloc_zeros::<f32>(N).unwrap();
    slow_copy(&slow, cover(N), &x, &mut first, COUNT, LONG).unwrap();
    copy(&fast, cover(N), &x, &mut second, COUNT).unwrap();
    fill(&owner, cover(N), &mut x, 5.0, COUNT).unwrap();
    assert_eq!(slow.clone_dtoh(&first).unwrap(), vec![1.0; N]);
    assert_eq!(fast.clone_dtoh(&second).unwrap(), vec![1.0; N]);
    assert_eq!(owner.clone_dtoh(&x).unwrap(), vec![5.0; N]);
}

#[test]
fn parts_of_an_array_are_freed_after_all_their_readers() {
    let device = device!();
    let [owner, slow, fast] = streams(&device);
    let x = owner.clone_htod(&vec![1.0_f32; 2 * N]).unwrap();
    let mut first = slow.alloc_zeros::<f32>(N).unwrap();
    let mut second = fast.alloc_zeros::<f32>(N).unwrap();
    {
        let (left, right) = x.split_at(N);
        slow_copy(&slow, cover(N), &left, &mut first, COUNT, LONG).unwrap();
        copy(&fast, cover(N), &right, &mut second, COUNT).unwrap();
    }
    drop(x);
    let z = owner.alloc_zeros::<f32>(2 * N).unwrap();
    assert_eq!(slow.clone_dtoh(&first).unwrap(), vec![1.0; N]);
    assert_eq!(fast.clone_dtoh(&second).unwrap(), vec![1.0; N]);
    assert_eq!(owner.clone_dtoh(&z).unwrap(), vec![0.0; 2 * N]);
}

#[test]
fn an_array_is_freed_after_a_writer_on_another_stream() {
    let device = device!();
    let [owner, writer] = streams(&device);
    let mut y = owner.alloc_zeros::<f32>(N).unwrap();
    slow_add(&writer, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    drop(y);
    let z = owner.alloc_zeros::<f32>(N).unwrap();
    writer.synchronize().unwrap();
    assert_eq!(owner.clone_dtoh(&z).unwrap(), vec![0.0; N]);
}

#[test]
fn a_reader_waits_for_the_writer() {
    let device = device!();
    let [writer, reader] = streams(&device);
    let mut x = writer.alloc_zeros::<f32>(N).unwrap();
    let mut out = reader.alloc_zeros::<f32>(N).unwrap();
    slow_add(&writer, (BLOCKS, 256), &mut x, 3.0, LONG).unwrap();
    copy(&reader, cover(N), &x, &mut out, COUNT).unwrap();
    assert_eq!(reader.clone_dtoh(&out).unwrap(), vec![3.0; N]);
}

#[test]
fn a_writer_waits_for_the_reader() {
    let device = device!();
    let [reader, writer] = streams(&device);
    let mut x = reader.clone_htod(&vec![1.0_f32; N]).unwrap();
    let mut out = reader.alloc_zeros::<f32>(N).unwrap();
    slow_copy(&reader, cover(N), &x, &mut out, COUNT, LONG).unwrap();
    fill(&writer, cover(N), &mut x, 2.0, COUNT).unwrap();
    assert_eq!(reader.clone_dtoh(&out).unwrap(), vec![1.0; N]);
    assert_eq!(writer.clone_dtoh(&x).unwrap(), vec![2.0; N]);
}

#[test]
fn a_writer_waits_for_the_writer() {
    let device = device!();
    let [first, second] = streams(&device);
    let mut y = first.alloc_zeros::<f32>(N).unwrap();
    slow_add(&first, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    fill(&second, cover(N), &mut y, 7.0, COUNT).unwrap();
    slow_add(&first, (BLOCKS, 256), &mut y, 1.0, 0).unwrap();
    assert_eq!(second.clone_dtoh(&y).unwrap(), vec![8.0; N]);
}

#[test]
fn parts_written_on_several_streams_are_seen_by_a_reader_of_all() {
    let device = device!();
    let [owner, one, two] = streams(&device);
    let mut y = owner.alloc_zeros::<f32>(2 * N).unwrap();
    {
        let (mut left, mut right) = y.split_at_mut(N);
        slow_add(&one, (BLOCKS, 256), &mut left, 1.0, LONG).unwrap();
        fill(&two, cover(N), &mut right, 2.0, COUNT).unwrap();
    }
    let mut out = owner.alloc_zeros::<f32>(2 * N).unwrap();
    copy(&owner, cover(2 * N), &y, &mut out, 2 * COUNT).unwrap();
    let out = owner.clone_dtoh(&out).unwrap();
    assert_eq!(out[..N], vec![1.0; N]);
    assert_eq!(out[N..], vec![2.0; N]);
}

#[test]
fn a_write_through_another_object_of_the_context_is_waited_for() {
    let device = device!();
    // This object knows of no second stream, and the other of no array.
    let other = CudaContext::new(0).unwrap();
    let (here, there) = (device.default_stream(), other.new_stream().unwrap());
    let mut y = here.alloc_zeros::<f32>(N).unwrap();
    let mut out = here.alloc_zeros::<f32>(N).unwrap();
    here.synchronize().unwrap();
    slow_add(&there, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    copy(&here, cover(N), &y, &mut out, COUNT).unwrap();
    assert_eq!(here.clone_dtoh(&out).unwrap(), vec![1.0; N]);

    slow_add(&there, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    drop(y);
    let z = here.alloc_zeros::<f32>(N).unwrap();
    there.synchronize().unwrap();
    assert_eq!(here.clone_dtoh(&z).unwrap(), vec![0.0; N]);
}

#[test]
fn a_read_through_another_object_of_the_context_is_waited_for() {
    let device = device!();
    let other = CudaContext::new(0).unwrap();
    let (here, there) = (device.default_stream(), other.new_stream().unwrap());
    let mut x = here.alloc_zeros::<f32>(N).unwrap();
    let mut out = there.alloc_zeros::<f32>(N).unwrap();
    there.synchronize().unwrap();
    slow_add(&here, (BLOCKS, 256), &mut x, 3.0, LONG).unwrap();
    slow_copy(&there, cover(N), &x, &mut out, COUNT, LONG).unwrap();
    fill(&here, cover(N), &mut x, 7.0, COUNT).unwrap();
    assert_eq!(there.clone_dtoh(&out).unwrap(), vec![3.0; N]);
    assert_eq!(here.clone_dtoh(&x).unwrap(), vec![7.0; N]);
}

#[test]
fn a_stored_error_is_told_as_earlier_and_costs_no_order() {
    let device = device!();
    let [writer, reader] = streams(&device);
    let mut x = writer.alloc_zeros::<f32>(N).unwrap();
    let mut out = reader.alloc_zeros::<f32>(N).unwrap();
    copy::load(&device).unwrap();
    slow_add(&writer, (BLOCKS, 256), &mut x, 3.0, LONG).unwrap();

    let stored = DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE);
    device.record_err(Err::<(), _>(stored));
    let error = copy(&reader, cover(N), &x, &mut out, COUNT).unwrap_err();
    let LaunchErrorKind::Earlier(found) = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*found, stored);
    let text = error.to_string();
    assert!(
        text.starts_with("kernel `copy`: an earlier error is stored in the context: ")
            && text.ends_with(
                "; it is not of this launch, which was not made, and everything enqueued since is \
                 in doubt"
            ),
        "{text}"
    );
    // Told once; the next launch is made, and waits.
    copy(&reader, cover(N), &x, &mut out, COUNT).unwrap();
    assert_eq!(reader.clone_dtoh(&out).unwrap(), vec![3.0; N]);
}

#[test]
fn the_first_launch_tells_a_stored_error_as_earlier() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32; 8]).unwrap();
    let stored = DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE);
    device.record_err(Err::<(), _>(stored));
    let error = fill(&stream, cover(8), &mut y, 2.0, 8).unwrap_err();
    assert!(
        matches!(error.kind(), LaunchErrorKind::Earlier(found) if *found == stored),
        "{error}"
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 8]);
    fill(&stream, cover(8), &mut y, 2.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 8]);
}

#[test]
fn loading_tells_a_stored_error_as_earlier() {
    let device = device!();
    device.record_err(Err::<(), _>(DriverError(
        CUresult::CUDA_ERROR_INVALID_HANDLE,
    )));
    let Err(error) = saxpy::load(&device) else {
        panic!("the stored error is lost");
    };
    assert!(matches!(
        error.kind(),
        gridcall::LoadErrorKind::Earlier(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE))
    ));
    saxpy::load(&device).unwrap();
}

#[test]
fn a_refused_launch_does_not_make_its_stream_wait() {
    let device = device!(alone);
    let [writer, refused] = streams(&device);
    let mut latch = Latch::new(&device);
    let mut seen = writer.alloc_zeros::<i32>(4).unwrap();
    let mut sum = refused.alloc_zeros::<f32>(4).unwrap();
    let mut count = refused.alloc_zeros::<u64>(1).unwrap();
    let x = refused.alloc_zeros::<f32>(4).unwrap();
    // Everything is loaded and has run before a kernel waits for the host.
    saxpy(&refused, cover(4), 4, 1.0, &x, &mut sum).unwrap();
    count_threads(&refused, (1, 1), &mut count).unwrap();
    copy4(&refused, cover(1), &x, &mut sum, 1).unwrap();
    device.synchronize().unwrap();

    latch.hold(&writer, &mut seen);
    // SAFETY: the bits of an i32 are those of a float, and nobody computes with them.
    let busy = unsafe { seen.transmute::<f32>(4) }.unwrap();
    // A contract, a view that is not aligned, a grid that is not possible, nothing to cover.
    saxpy(&refused, cover(9), 9, 1.0, &busy, &mut sum).unwrap_err();
    copy4(&refused, cover(1), &busy.slice(1..), &mut sum, 0).unwrap_err();
    saxpy(&refused, (0, 1), 4, 1.0, &busy, &mut sum).unwrap_err();
    saxpy(&refused, cover(0), 4, 1.0, &busy, &mut sum).unwrap();
    assert!(is_busy(&writer));
    assert!(
        ends(&refused),
        "the stream waits for an array that it was not let use"
    );
    assert!(is_busy(&writer));
    latch.release();
    assert_eq!(writer.clone_dtoh(&seen).unwrap(), [1, 0, 0, 0]);
}

#[test]
fn a_refused_launch_does_not_make_its_array_s_stream_wait() {
    let device = device!(alone);
    let [owner, writer, refused] = streams(&device);
    let mut latch = Latch::new(&device);
    let mut seen = owner.alloc_zeros::<i32>(4).unwrap();
    let mut sum = refused.alloc_zeros::<f32>(4).unwrap();
    saxpy::load(&device).unwrap();
    device.synchronize().unwrap();

    latch.hold(&writer, &mut seen);
    // SAFETY: the bits of an i32 are those of a float, and nobody computes with them.
    let busy = unsafe { seen.transmute::<f32>(4) }.unwrap();
    saxpy(&refused, cover(9), 9, 1.0, &busy, &mut sum).unwrap_err();
    saxpy(&refused, cover(0), 4, 1.0, &busy, &mut sum).unwrap();
    assert!(
        ends(&owner),
        "the array's own stream waits for its writer though nothing was launched"
    );
    assert!(is_busy(&writer));
}

#[test]
fn a_refused_launch_records_no_use() {
    let device = device!(alone);
    let [owner, busy] = streams(&device);
    let mut latch = Latch::new(&device);
    let mut seen = busy.alloc_zeros::<i32>(1).unwrap();
    let mut x = owner.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut y = owner.alloc_zeros::<f32>(4).unwrap();
    saxpy(&owner, cover(4), 4, 1.0, &x, &mut y).unwrap();
    fill(&owner, cover(4), &mut x, 1.0, 4).unwrap();
    copy4(&owner, cover(1), &x, &mut y, 1).unwrap();
    device.synchronize().unwrap();

    latch.hold(&busy, &mut seen);
    saxpy(&busy, cover(9), 9, 1.0, &x, &mut y).unwrap_err();
    copy4(&busy, cover(1), &x.slice(1..), &mut y, 0).unwrap_err();
    saxpy(&busy, (1, 0), 4, 1.0, &x, &mut y).unwrap_err();
    saxpy(&busy, cover(0), 4, 1.0, &x, &mut y).unwrap();
    // Writers of what the refused launches were given wait for nothing.
    fill(&owner, cover(4), &mut x, 2.0, 4).unwrap();
    fill(&owner, cover(4), &mut y, 3.0, 4).unwrap();
    assert!(ends(&owner), "a use is recorded that was not made");
    assert!(is_busy(&busy));
    latch.release();
    assert_eq!(owner.clone_dtoh(&x).unwrap(), [2.0; 4]);
    assert_eq!(owner.clone_dtoh(&y).unwrap(), [3.0; 4]);
}

#[test]
fn a_launch_waits_for_what_it_is_let_use() {
    let device = device!(alone);
    let [writer, reader] = streams(&device);
    let mut latch = Latch::new(&device);
    let mut seen = writer.alloc_zeros::<i32>(4).unwrap();
    let mut out = reader.alloc_zeros::<f32>(4).unwrap();
    copy(&reader, cover(1), &out.try_clone().unwrap(), &mut out, 1).unwrap();
    device.synchronize().unwrap();

    latch.hold(&writer, &mut seen);
    // SAFETY: the bits of an i32 are those of a float, and nobody computes with them.
    let busy = unsafe { seen.transmute::<f32>(4) }.unwrap();
    copy(&reader, cover(4), &busy, &mut out, 4).unwrap();
    assert!(is_busy(&reader), "the reader does not wait for the writer");
    latch.release();
    assert!(ends(&reader));
    let bits: Vec<u32> = reader
        .clone_dtoh(&out)
        .unwrap()
        .iter()
        .map(|f| f.to_bits())
        .collect();
    assert_eq!(bits, [1, 0, 0, 0]);
}

#[test]
fn a_latch_is_a_kernel_too() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut latch = Latch::new(&device);
    let mut seen = stream.alloc_zeros::<i32>(1).unwrap();
    let kernel = spin_flag::load(&device).unwrap();
    assert!(kernel.max_threads_per_block() >= 1);
    latch.hold(&stream, &mut seen);
    assert!(is_busy(&stream));
    latch.release();
    assert!(ends(&stream));
    assert_eq!(stream.clone_dtoh(&seen).unwrap(), [1]);
}

#[test]
fn parts_written_on_several_threads_are_seen_by_all() {
    let device = device!();
    let [left_stream, right_stream, reader] = streams(&device);
    for _ in 0..40 {
        let mut y = reader.alloc_zeros::<f32>(2 * N).unwrap();
        let (mut left, mut right) = y.split_at_mut(N);
        thread::scope(|scope| {
            scope.spawn(|| fill(&left_stream, cover(N), &mut left, 1.0, COUNT).unwrap());
            scope.spawn(|| fill(&right_stream, cover(N), &mut right, 2.0, COUNT).unwrap());
        });
        let y = reader.clone_dtoh(&y).unwrap();
        assert!(y[..N].iter().all(|&element| element == 1.0));
        assert!(y[N..].iter().all(|&element| element == 2.0));
    }
}

#[test]
fn an_array_is_freed_after_readers_on_several_threads() {
    let device = device!();
    let [owner, other] = streams(&device);
    let readers: [_; 3] = streams(&device);
    for _ in 0..40 {
        let x = owner.clone_htod(&vec![3.0_f32; N]).unwrap();
        let results = thread::scope(|scope| {
            let read = readers.each_ref().map(|stream| {
                let x = &x;
                scope.spawn(move || {
                    let mut out = stream.alloc_zeros::<f32>(N).unwrap();
                    copy(stream, cover(N), x, &mut out, COUNT).unwrap();
                    out
                })
            });
            read.map(|thread| thread.join().unwrap())
        });
        drop(x);
        // The same memory, where the driver hands it out again.
        let _z = owner.clone_htod(&vec![9.0_f32; N]).unwrap();
        for out in &results {
            assert_eq!(other.clone_dtoh(out).unwrap(), vec![3.0; N]);
        }
    }
}

#[test]
fn managed_memory_is_written_after_readers_on_several_threads() {
    let device = device!();
    let readers: [_; 3] = streams(&device);
    // SAFETY: it is written before it is read.
    let mut x = unsafe { device.alloc_unified::<f32>(N, true) }.unwrap();
    for round in 0..20_u8 {
        let value = f32::from(round);
        x.as_mut_slice().unwrap().fill(value);
        let results = thread::scope(|scope| {
            let read = readers.each_ref().map(|stream| {
                let x = &x;
                scope.spawn(move || {
                    let mut out = stream.alloc_zeros::<f32>(N).unwrap();
                    copy(stream, cover(N), x, &mut out, COUNT).unwrap();
                    out
                })
            });
            read.map(|thread| thread.join().unwrap())
        });
        // The host may write once all have read.
        x.as_mut_slice().unwrap().fill(-1.0);
        for (out, stream) in results.iter().zip(&readers) {
            assert_eq!(stream.clone_dtoh(out).unwrap(), vec![value; N]);
        }
    }
}
