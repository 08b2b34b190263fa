//! Parts of buffers.

use std::{sync::Arc, thread};

use gridcall::{Buffer, BufferErrorKind, cover, cudarc::driver::CudaStream};

use crate::{
    kernels::{copy, fill, scale, slow_add},
    support::{LONG, Latch, ends, is_busy, ramp},
};

fn of_ramp(stream: &Arc<CudaStream>) -> Buffer<f32> {
    Buffer::from_slice(stream, &ramp(64)).unwrap()
}

#[test]
fn a_slice_is_its_elements() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = of_ramp(&stream);
    let all = ramp(64);
    assert_eq!(x.slice(10..20).unwrap().to_vec().unwrap(), all[10..20]);
    assert_eq!(x.slice(..=3).unwrap().to_vec().unwrap(), all[..=3]);
    let inner = x.slice(10..).unwrap().slice(5..7).unwrap();
    assert_eq!(inner.to_vec().unwrap(), all[15..17]);
    assert!(x.slice(64..).unwrap().is_empty());
    assert_eq!(x.slice(64..).unwrap().to_vec().unwrap(), [0.0; 0]);
    fill(&stream, cover(4), &mut x.slice_mut(8..12).unwrap(), -1.0, 4).unwrap();
    let mut expected = all;
    expected[8..12].fill(-1.0);
    assert_eq!(x.to_vec().unwrap(), expected);
}

#[test]
fn a_range_beyond_the_end_is_an_error() {
    let device = device!();
    let stream = device.default_stream();
    let mut x = of_ramp(&stream);
    let error = x.slice(60..65).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the range 60..65 does not lie within 64 elements"
    );
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let error = x.slice(5..4).unwrap_err();
    assert!(matches!(
        error.kind(),
        BufferErrorKind::Range {
            start: 5,
            end: 4,
            ..
        }
    ));
    assert!(x.slice(..=usize::MAX).is_err());
    assert!(x.split_at_mut(65).is_err());
    assert!(x.slice_mut(65..).is_err());
}

#[test]
fn a_buffer_becomes_one_of_another_type() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = of_ramp(&a);
    slow_add(&a, (1, 64), &mut x, 1.0, LONG).unwrap();
    // It is still known that `a` writes it.
    let vectors: Buffer<[f32; 4]> = x.cast().unwrap();
    assert_eq!(vectors.len(), 16);
    let copied = vectors.clone_to(&b).unwrap();
    assert_eq!(copied.to_vec().unwrap()[1], [5.0, 6.0, 7.0, 8.0]);
    let mut words: Buffer<u32> = vectors.cast().unwrap();
    assert_eq!(words.to_vec().unwrap()[4], 5.0_f32.to_bits());
    words.slice_mut(..1).unwrap().clear(&b).unwrap();
    let bytes: Buffer<u8> = words.cast().unwrap();
    assert_eq!(bytes.to_vec().unwrap()[..8], [0, 0, 0, 0, 0, 0, 0, 64]);
    let mut numbers: Buffer<f32> = bytes.cast().unwrap();
    fill(&a, cover(64), &mut numbers, 3.0, 64).unwrap();
    assert_eq!(
        a.clone_dtoh(&numbers.into_cuda_slice().unwrap()).unwrap(),
        [3.0; 64]
    );
}

#[test]
fn a_buffer_that_does_not_fit_another_type_is_told() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; 3]).unwrap();
    let error = x.cast::<u64>().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("12 bytes at an address aligned to"),
        "{error}"
    );
    let none = Buffer::<f32>::zeroed(&stream, 0).unwrap();
    assert!(none.cast::<[f32; 4]>().unwrap().is_empty());
}

#[test]
fn a_cast_is_checked() {
    let device = device!();
    let stream = device.default_stream();
    let mut x = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0]).unwrap();
    let bits = x.as_slice().cast::<u32>().unwrap().to_vec().unwrap();
    assert_eq!(bits, [1.0_f32, 2.0, 3.0].map(f32::to_bits));
    assert_eq!(x.as_slice().cast::<u8>().unwrap().len(), 12);
    let error = x.as_slice().cast::<u64>().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("12 bytes at an address aligned to "),
        "{error}"
    );
    let shifted = x.slice(1..).unwrap();
    assert!(
        shifted
            .cast::<u64>()
            .unwrap_err()
            .to_string()
            .contains("aligned to 4 cannot")
    );
    let mut bits = x.as_slice_mut();
    bits.cast_mut::<u32>()
        .unwrap()
        .copy_from_slice(&[0; 3])
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [0.0; 3]);
}

#[test]
fn halves_do_not_wait_for_each_other() {
    let device = device!(alone);
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = of_ramp(&a);
    let mut seen = a.alloc_zeros::<i32>(1).unwrap();
    // Both are loaded and both streams known before anything waits.
    drop(of_ramp(&b));
    let (mut head, mut tail) = x.split_at_mut(32).unwrap();
    fill(&a, cover(32), &mut head, 0.0, 32).unwrap();
    fill(&b, cover(32), &mut tail, 0.0, 32).unwrap();
    a.synchronize().unwrap();
    let mut latch = Latch::new(&device);
    latch.hold(&a, &mut seen);
    fill(&a, cover(32), &mut head, 1.0, 32).unwrap();
    fill(&b, cover(32), &mut tail, 2.0, 32).unwrap();
    assert!(ends(&b));
    assert!(is_busy(&a));
    latch.release();
    let mut expected = [1.0; 64];
    expected[32..].fill(2.0);
    assert_eq!(x.to_vec().unwrap(), expected);
}

#[test]
fn halves_are_written_by_two_threads() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut x = Buffer::<f32>::zeroed(&stream, 512).unwrap();
    for _ in 0..3 {
        let (mut head, mut tail) = x.split_at_mut(256).unwrap();
        thread::scope(|scope| {
            for half in [&mut head, &mut tail] {
                scope.spawn(|| {
                    let stream = device.new_stream().unwrap();
                    for _ in 0..20 {
                        slow_add(&stream, (1, 256), half, 1.0, 10_000).unwrap();
                    }
                });
            }
        });
        scale(&stream, cover(512), &mut x, 2.0, 512).unwrap();
    }
    // ((20 · 2) + 20) · 2 + 20) · 2
    assert_eq!(x.to_vec().unwrap(), [280.0; 512]);
}

#[test]
fn parts_that_overlap_wait() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&a, 1024).unwrap();
    let mut y = Buffer::<f32>::zeroed(&b, 512).unwrap();
    slow_add(&a, (2, 256), &mut x.slice_mut(..512).unwrap(), 1.0, LONG).unwrap();
    copy(&b, cover(512), &x.slice(256..768).unwrap(), &mut y, 512).unwrap();
    let y = y.to_vec().unwrap();
    assert_eq!(y[..256], [1.0; 256]);
    assert_eq!(y[256..], [0.0; 256]);
}
