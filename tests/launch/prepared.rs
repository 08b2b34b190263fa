//! Is a prepared launch the same launch, with every check that its arguments need?

use gridcall::{
    GeometryError, Launch, LaunchErrorKind, Prepared, Safe, cover,
    cudarc::driver::{CudaContext, sys},
    kernel,
};

use crate::{
    kernels::{saxpy, slow_add, where_am_i},
    support::ramp,
};

#[kernel(ptx = "../kernels/cooperative.ptx")]
unsafe extern "C" {
    #[cooperative]
    #[requires(n >= 1, parts.len() >= grid.x, out.len() >= 1, x.len() >= n, block.x <= 1024)]
    #[requires(grid.blocks() == grid.x, block.threads() == block.x, block.x >= 32)]
    safe fn grid_sum(x: &[f32], parts: &mut [f32], out: &mut [f32], n: i32);
}

#[kernel(ptx = "../kernels/vector.ptx")]
/// Any number of elements.
unsafe fn fill(y: &mut [f32], v: f32, n: i32);

/// What a program keeps for its loop.
struct Step {
    saxpy: Prepared<'static, saxpy, Safe>,
}

#[test]
fn a_prepared_launch_does_what_the_launch_does() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(1000)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(1000).unwrap();
    let kernel = saxpy::load(&device).unwrap();
    let step = Step {
        saxpy: kernel.prepare(&stream, cover(1000)).unwrap(),
    };
    drop(kernel);
    for _ in 0..3 {
        let arguments = saxpy {
            n: 1000,
            a: 2.0,
            x: &x,
            y: &mut y,
        };
        step.saxpy.launch(arguments).unwrap();
    }
    let expected: Vec<f32> = ramp(1000).into_iter().map(|x| 6.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    assert!(std::sync::Arc::ptr_eq(step.saxpy.stream(), &stream));
}

#[test]
fn contracts_see_the_prepared_grid() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = where_am_i::load(&device).unwrap();
    let prepared = kernel.prepare(&stream, (2, 32)).unwrap();
    let mut out = stream.alloc_zeros::<u32>(12 * 64 - 1).unwrap();
    let error = prepared.launch(where_am_i { out: &mut out }).unwrap_err();
    let LaunchErrorKind::Requirement { values, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(
        values,
        "out.len() is 767, grid is (2, 1, 1) and block is (32, 1, 1)"
    );
    let mut out = stream.alloc_zeros::<u32>(12 * 64).unwrap();
    prepared.launch(where_am_i { out: &mut out }).unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap()[12 * 63..],
        [2, 1, 1, 32, 1, 1, 1, 0, 0, 31, 0, 0]
    );
}

#[test]
fn what_is_impossible_is_refused_when_it_is_prepared() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = saxpy::load(&device).unwrap();
    let error = kernel.prepare(&stream, (0, 32)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: grid.x is 0; only a launch made by `cover` may be empty"
    );
    let error = kernel
        .prepare(&stream, Launch::new(1, 32).shared::<f64>(usize::MAX))
        .unwrap_err();
    let LaunchErrorKind::Geometry(GeometryError::SharedMemory {
        asked: u64::MAX, ..
    }) = error.kind()
    else {
        panic!("{error}");
    };
    // Nothing is covered, and nothing launched.
    let x = stream.clone_htod(&ramp(10)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(10).unwrap();
    let arguments = saxpy {
        n: 10,
        a: 2.0,
        x: &x,
        y: &mut y,
    };
    kernel
        .prepare(&stream, cover(0))
        .unwrap()
        .launch(arguments)
        .unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 10]);
}

#[test]
fn another_object_of_the_same_context_will_do() {
    let device = device!();
    let other = CudaContext::new(0).unwrap();
    saxpy::load(&device)
        .unwrap()
        .prepare(&other.default_stream(), cover(10))
        .unwrap();
}

#[test]
fn shared_memory_is_opted_in_to_beforehand() {
    #[kernel(ptx = "../kernels/shared.ptx")]
    unsafe extern "C" {
        #[requires(y.len() >= grid.x * block.x)]
        safe fn tile(y: &mut [f32]);
    }
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(256).unwrap();
    let launch = Launch::new(1, 256).shared::<f32>(15 * 1024);
    let prepared = tile::load(&device)
        .unwrap()
        .prepare(&stream, launch)
        .unwrap();
    for _ in 0..2 {
        prepared.launch(tile { y: &mut y }).unwrap();
    }
    let found: f32 = stream.clone_dtoh(&y).unwrap().iter().sum();
    assert_eq!(found, 15.0 * 1024.0);
}

#[test]
fn a_prepared_launch_is_ordered_with_other_streams() {
    let device = device!();
    let (one, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut y = one.alloc_zeros::<f32>(32).unwrap();
    let kernel = slow_add::load(&device).unwrap();
    let slow = kernel.prepare(&one, (1, 32)).unwrap();
    let quick = kernel.prepare(&other, (1, 32)).unwrap();
    for _ in 0..3 {
        slow.launch(slow_add {
            y: &mut y,
            v: 1.0,
            cycles: crate::support::LONG / 10,
        })
        .unwrap();
        quick
            .launch(slow_add {
                y: &mut y,
                v: 2.0,
                cycles: 0,
            })
            .unwrap();
    }
    assert_eq!(one.clone_dtoh(&y).unwrap(), [9.0; 32]);
}

#[test]
fn a_captured_stream_is_refused_at_the_launch() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(32).unwrap();
    let prepared = slow_add::load(&device)
        .unwrap()
        .prepare(&stream, (1, 32))
        .unwrap();
    stream.synchronize().unwrap();
    stream
        .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
    let error = prepared
        .launch(slow_add {
            y: &mut y,
            v: 1.0,
            cycles: 0,
        })
        .unwrap_err();
    assert!(
        matches!(error.kind(), LaunchErrorKind::Capturing),
        "{error}"
    );
    let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let _ = stream.end_capture(flags);
    prepared
        .launch(slow_add {
            y: &mut y,
            v: 1.0,
            cycles: 0,
        })
        .unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 32]);
}

#[test]
fn attributes_are_prepared_too() {
    let device = device!();
    let stream = device.default_stream();
    let event = device.new_event(None).unwrap();
    let x = stream.clone_htod(&ramp(1000)).unwrap();
    let mut parts = stream.alloc_zeros::<f32>(8).unwrap();
    let kernel = grid_sum::load(&device).unwrap();
    let error = kernel.prepare(&stream, (1_000_000, 1024)).unwrap_err();
    assert!(
        matches!(error.kind(), LaunchErrorKind::Attribute(_)),
        "{error}"
    );
    let launch = Launch::new(8, 64).launch_completion_event(&event);
    let prepared = kernel.prepare(&stream, launch).unwrap();
    for n in [1000, 10] {
        let mut out = stream.alloc_zeros::<f32>(1).unwrap();
        let arguments = grid_sum {
            x: &x,
            parts: &mut parts,
            out: &mut out,
            n,
        };
        prepared.launch(arguments).unwrap();
        event.synchronize().unwrap();
        let expected: f32 = ramp(1000)[..n.unsigned_abs() as usize].iter().sum();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [expected]);
    }
}

#[test]
fn an_unsafe_kernel_is_prepared_for_callers_who_vouch() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(100).unwrap();
    let prepared = fill::load(&device)
        .unwrap()
        .prepare(&stream, cover(100))
        .unwrap();
    let arguments = fill {
        y: &mut y,
        v: 3.0,
        n: 100,
    };
    // SAFETY: `y` has a hundred elements.
    unsafe { prepared.launch(arguments) }.unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0; 100]);
}
