//! Streams of every origin: the default one, the thread's, one that another library made, a second one
//! that comes late.

use std::{sync::Arc, thread};

use gridcall::{
    cover,
    cudarc::driver::{CudaContext, sys},
};

use crate::{
    kernels::{copy, fill, saxpy, slow_add},
    support::{LONG, ramp},
};

const N: usize = 1 << 14;
const COUNT: i32 = 1 << 14;
const BLOCKS: u32 = (1 << 14) / 256;

/// A stream that cudarc did not make, destroyed at the end.
struct Foreign {
    raw: sys::CUstream,
    context: Arc<CudaContext>,
}

impl Foreign {
    fn new(context: &Arc<CudaContext>) -> Foreign {
        const NON_BLOCKING: u32 = 1;
        context.bind_to_thread().unwrap();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place takes the answer.
        unsafe { sys::cuStreamCreate(&raw mut raw, NON_BLOCKING) }
            .result()
            .unwrap();
        Foreign {
            raw,
            context: context.clone(),
        }
    }

    fn borrow(&self) -> Arc<gridcall::cudarc::driver::CudaStream> {
        // SAFETY: the stream is of this context, and each test keeps it to its end.
        unsafe { self.context.wrap_borrowed_stream(self.raw) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the stream was created by `new` and is destroyed once.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
    }
}

#[test]
fn a_borrowed_stream_alone() {
    let device = device!();
    let foreign = Foreign::new(&device);
    let stream = foreign.borrow();
    let x = stream.clone_htod(&ramp(64)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    saxpy(&stream, cover(64), 64, 2.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = ramp(64).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_borrowed_stream_beside_another() {
    let device = device!();
    let foreign = Foreign::new(&device);
    let borrowed = foreign.borrow();
    let owner = device.new_stream().unwrap();
    let mut y = owner.alloc_zeros::<f32>(N).unwrap();
    let mut out = owner.alloc_zeros::<f32>(N).unwrap();
    slow_add(&borrowed, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    copy(&owner, cover(N), &y, &mut out, COUNT).unwrap();
    assert_eq!(owner.clone_dtoh(&out).unwrap(), vec![1.0; N]);

    slow_add(&borrowed, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    drop(y);
    let z = owner.alloc_zeros::<f32>(N).unwrap();
    borrowed.synchronize().unwrap();
    assert_eq!(owner.clone_dtoh(&z).unwrap(), vec![0.0; N]);
}

#[test]
fn the_stream_of_a_thread() {
    let device = device!();
    let stream = device.per_thread_stream();
    let x = stream.clone_htod(&ramp(64)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    saxpy(&stream, cover(64), 64, 2.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = ramp(64).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn the_stream_of_a_thread_beside_another() {
    let device = device!();
    let owner = device.new_stream().unwrap();
    let mine = device.per_thread_stream();
    let mut y = owner.alloc_zeros::<f32>(N).unwrap();
    slow_add(&mine, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    fill(&owner, cover(N), &mut y, 4.0, COUNT).unwrap();
    mine.synchronize().unwrap();
    assert_eq!(owner.clone_dtoh(&y).unwrap(), vec![4.0; N]);
}

#[test]
fn a_second_stream_that_another_thread_makes_meanwhile() {
    let device = device!();
    let first = device.default_stream();
    let mut y = first.alloc_zeros::<f32>(N).unwrap();
    slow_add(&first, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    let second = thread::spawn({
        let context = (*device).clone();
        move || context.new_stream().unwrap()
    })
    .join()
    .unwrap();
    slow_add(&second, (BLOCKS, 256), &mut y, 1.0, LONG).unwrap();
    slow_add(&first, (BLOCKS, 256), &mut y, 1.0, 0).unwrap();
    let mut out = second.alloc_zeros::<f32>(N).unwrap();
    copy(&second, cover(N), &y, &mut out, COUNT).unwrap();
    assert_eq!(second.clone_dtoh(&out).unwrap(), vec![3.0; N]);
}

#[test]
fn a_second_stream_that_comes_between_many_launches() {
    let device = device!();
    let first = device.default_stream();
    let mut y = first.alloc_zeros::<f32>(256).unwrap();
    let streams = thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let streams: Vec<_> = (0..4).map(|_| device.new_stream().unwrap()).collect();
            streams
        });
        for _ in 0..500 {
            slow_add(&first, (1, 256), &mut y, 1.0, 0).unwrap();
        }
        maker.join().unwrap()
    });
    for stream in &streams {
        slow_add(stream, (1, 256), &mut y, 1.0, 0).unwrap();
    }
    assert_eq!(first.clone_dtoh(&y).unwrap(), [504.0; 256]);
}

#[test]
fn the_host_reads_managed_memory_after_the_kernel() {
    let device = device!();
    // The only stream of its context object: nothing is tracked but managed memory.
    let stream = device.default_stream();
    // SAFETY: it is written before it is read.
    let mut y = unsafe { device.alloc_unified::<f32>(N, true) }.unwrap();
    y.as_mut_slice().unwrap().fill(1.0);
    slow_add(&stream, (BLOCKS, 256), &mut y, 2.0, LONG).unwrap();
    assert_eq!(y.as_slice().unwrap(), vec![3.0; N]);
    slow_add(&stream, (BLOCKS, 256), &mut y.as_view_mut(), 2.0, LONG).unwrap();
    y.as_mut_slice().unwrap()[0] = 0.0;
    let host = y.as_slice().unwrap();
    assert_eq!((host[0], host[1], host[N - 1]), (0.0, 5.0, 5.0));
}

#[test]
fn managed_memory_is_freed_after_the_kernel() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut out = stream.alloc_zeros::<f32>(N).unwrap();
    {
        // SAFETY: it is written before it is read.
        let mut x = unsafe { device.alloc_unified::<f32>(N, true) }.unwrap();
        x.as_mut_slice().unwrap().fill(6.0);
        crate::kernels::slow_copy(&stream, cover(N), &x, &mut out, COUNT, LONG).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&out).unwrap(), vec![6.0; N]);
}
