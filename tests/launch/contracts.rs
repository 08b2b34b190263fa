//! Does a launch that breaks a `#[requires]` say so, with the values, and do nothing?

use gridcall::{Launch, LaunchError, LaunchErrorKind, cover, kernel};

use crate::{
    kernels::{axpy, transpose, where_am_i},
    support::ramp,
};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x * block.x, grid.y == 1, grid.z == 1)]
    safe fn zero(y: &mut [f32]);

    /// What is required has nothing to do with the kernel.
    #[name("pad")]
    #[requires(n * n * n * n * n <= 1000000, out.len() >= n)]
    safe fn pad_few(out: &mut [f32], n: usize);

    #[name("fill")]
    #[requires(
        y.len() >= n,
        !y.is_empty(),
        n % 2 == 0 || n.is_multiple_of(5),
        v >= 0.0,
        (n - 3) * 2 < 100
    )]
    safe fn fill_some(y: &mut [f32], v: f32, n: i32);
}

#[kernel(ptx = "../kernels/shared.ptx")]
unsafe extern "C" {
    #[requires(
        block.x % 32 == 0,
        block.threads() == block.x,
        x.len() >= n,
        out.len() >= grid.blocks()
    )]
    safe fn reduce_sum(x: &[f32], out: &mut [f32], n: i32);

    #[requires(y.len() >= grid.x * block.x, shared_mem_bytes == block.x * 4)]
    safe fn tile(y: &mut [f32]);
}

/// What was required, and what it was instead.
#[track_caller]
fn broken(result: Result<(), LaunchError>) -> (&'static str, String) {
    let error = result.expect_err("the contract is broken");
    match error.kind() {
        LaunchErrorKind::Requirement {
            requirement,
            values,
        } => (requirement, values.clone()),
        _ => panic!("{error}"),
    }
}

#[track_caller]
fn assert_tells(values: &str, parts: &[&str]) {
    for part in parts {
        assert!(values.contains(part), "{values}");
    }
}

fn is(requirement: &'static str, values: &str) -> (&'static str, String) {
    (requirement, values.to_owned())
}

#[test]
fn a_short_array_is_named_with_its_length() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32; 1024]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(1000).unwrap();
    let error = axpy(&stream, cover(1024), 1024, 2.0, &x, &mut y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `axpy`: the launch needs `y.len() >= n`, but n is 1024 and y.len() is 1000"
    );
    assert_eq!(error.kernel(), "axpy");
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 1000]);
    axpy(&stream, cover(1000), 1000, 2.0, &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 1000]);
}

#[test]
fn the_first_broken_requirement_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.alloc_zeros::<f32>(5).unwrap();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    assert_eq!(
        broken(axpy(&stream, cover(6), 6, 1.0, &x, &mut y)),
        is("x.len() >= n", "n is 6 and x.len() is 5")
    );
}

#[test]
fn products_of_lengths_do_not_wrap() {
    let device = device!();
    let stream = device.default_stream();
    let input = stream.clone_htod(&ramp(16)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(16).unwrap();
    // 65536 × 65536 is 0 in 32 bits.
    assert_eq!(
        broken(transpose(
            &stream,
            cover(16),
            &input,
            &mut out,
            65536,
            65536,
            16
        )),
        is(
            "input.len() >= rows * cols",
            "input.len() is 16, rows is 65536 and cols is 65536"
        )
    );
    // The fifth power is beyond 128 bits, and saturates.
    let n = usize::MAX;
    assert_eq!(
        broken(pad_few(&stream, cover(1), &mut out, n)),
        is("n * n * n * n * n <= 1000000", &format!("n is {n}"))
    );
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0; 16]);
    pad_few(&stream, cover(15), &mut out, 15).unwrap();
    let mut expected = [1.0; 16];
    expected[15] = 0.0;
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn a_contract_may_speak_of_the_launch() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[5.0_f32; 90]).unwrap();
    let (requirement, values) = broken(zero(&stream, (1, 128), &mut y));
    assert_eq!(requirement, "y.len() >= grid.x * block.x");
    assert_tells(&values, &["y.len() is 90", "grid", "block", "128"]);
    let (requirement, values) = broken(zero(&stream, Launch::new((1, 7), 32), &mut y));
    assert_eq!(requirement, "grid.y == 1");
    assert_tells(&values, &["grid", "7"]);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [5.0; 90]);
    zero(&stream, (2, 45), &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 90]);

    let mut out = stream.alloc_zeros::<u32>(12 * 64 - 1).unwrap();
    let (requirement, _) = broken(where_am_i(&stream, (2, 32), &mut out));
    assert_eq!(
        requirement,
        "out.len() >= grid.blocks() * block.threads() * 12"
    );
}

#[test]
fn a_contract_may_speak_of_the_block_and_shared_memory() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32; 256]).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let (requirement, values) = broken(reduce_sum(&stream, (4, 48), &x, &mut out, 192));
    assert_eq!(requirement, "block.x % 32 == 0");
    assert_tells(&values, &["block", "48"]);
    let (requirement, _) = broken(reduce_sum(&stream, (4, (32, 2)), &x, &mut out, 256));
    assert_eq!(requirement, "block.threads() == block.x");
    reduce_sum(&stream, (4, 64), &x, &mut out, 250).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [64.0, 64.0, 64.0, 58.0]);

    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    let too_little = Launch::new(1, 64).shared_mem_bytes(128);
    let (requirement, values) = broken(tile(&stream, too_little, &mut y));
    assert_eq!(requirement, "shared_mem_bytes == block.x * 4");
    assert_tells(&values, &["shared_mem_bytes is 128", "block", "64"]);
    tile(&stream, Launch::new(1, 64).shared_mem_bytes(256), &mut y).unwrap();
    let found: f32 = stream.clone_dtoh(&y).unwrap().iter().sum();
    assert_eq!(found.to_bits(), 64.0_f32.to_bits());
}

#[test]
fn a_contract_is_an_expression_of_rust() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(60).unwrap();
    fill_some(&stream, cover(4), &mut y, 1.0, 4).unwrap();
    fill_some(&stream, cover(5), &mut y, 1.0, 5).unwrap();
    let (requirement, values) = broken(fill_some(&stream, cover(7), &mut y, 1.0, 7));
    assert_eq!(requirement, "n % 2 == 0 || n.is_multiple_of(5)");
    assert_eq!(values, "n is 7");
    let (requirement, values) = broken(fill_some(&stream, cover(4), &mut y, -0.5, 4));
    assert_eq!((requirement, &*values), ("v >= 0.0", "v is -0.5"));
    let (requirement, _) = broken(fill_some(&stream, cover(60), &mut y, 1.0, 60));
    assert_eq!(requirement, "(n - 3) * 2 < 100");
    let mut empty = stream.alloc_zeros::<f32>(0).unwrap();
    let (requirement, _) = broken(fill_some(&stream, cover(0), &mut empty, 1.0, 0));
    assert_eq!(requirement, "!y.is_empty()");
}

#[test]
fn contracts_hold_for_unsafe_kernels_too() {
    #[kernel(ptx = "../kernels/vector.ptx")]
    unsafe extern "C" {
        #[name("zero")]
        #[requires(y.len() >= 4)]
        unsafe fn zero_four(y: &mut [f32]);
    }

    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(3).unwrap();
    // SAFETY: four threads would write four elements; the contract refuses three.
    let result = unsafe { zero_four(&stream, (1, 4), &mut y) };
    assert_eq!(broken(result), is("y.len() >= 4", "y.len() is 3"));
}
