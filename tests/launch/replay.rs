//! Is a kernel that is launched as a graph of one node the same kernel, with every check of its launch?

use std::{thread, time::Instant};

use gridcall::{
    AttributeError, Buffer, DevicePointerMut, GeometryError, Launch, LaunchErrorKind, Replay,
    cover,
    cudarc::driver::{CudaContext, sys::CUstreamCaptureMode},
    kernel,
};

use crate::{
    kernels::{copy, fill, saxpy, slow_add, where_am_i},
    support::{LONG, ramp},
};

#[kernel(ptx = "../kernels/cooperative.ptx")]
unsafe extern "C" {
    #[cooperative]
    #[requires(n >= 1, parts.len() >= grid.x, out.len() >= 1, x.len() >= n, block.x <= 1024)]
    #[requires(grid.blocks() == grid.x, block.threads() == block.x, block.x >= 32)]
    safe fn grid_sum(x: &[f32], parts: &mut [f32], out: &mut [f32], n: i32);
}

#[kernel(ptx = "../kernels/symbols.ptx")]
unsafe extern "C" {
    #[name("taps")]
    static mut TAPS: [f32; 5];
    #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
    safe fn slow_taps(y: &mut [f32], cycles: i64);
}

#[test]
fn each_launch_has_its_own_arguments_and_shape() {
    let device = device!();
    for stream in [device.default_stream(), device.new_stream().unwrap()] {
        let x = stream.clone_htod(&ramp(1000)).unwrap();
        let mut y = stream.alloc_zeros::<f32>(1000).unwrap();
        let mut other = stream.alloc_zeros::<f32>(1000).unwrap();
        let mut replay = saxpy::load(&device).unwrap().replay().unwrap();
        let mut expected = [vec![0.0_f32; 1000], vec![0.0; 1000]];
        // None is waited for before the next changes the node.
        for step in 0..40_u16 {
            let (n, a) = (u32::from(step) * 25, f32::from(step));
            let target = usize::from(step % 3 == 0);
            let target_of = [&mut y, &mut other].into_iter().nth(target).unwrap();
            for _ in 0..=step % 2 {
                let y = &mut *target_of;
                replay
                    .launch(&stream, cover(n), saxpy { n, a, x: &x, y })
                    .unwrap();
                for (y, x) in expected[target].iter_mut().zip(ramp(25 * step)) {
                    *y += a * x;
                }
            }
        }
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected[0]);
        assert_eq!(stream.clone_dtoh(&other).unwrap(), expected[1]);
        let kernel = replay.kernel().clone();
        let one = saxpy {
            n: 1,
            a: 0.0,
            x: &x,
            y: &mut y,
        };
        kernel.launch(&stream, cover(1), one).unwrap();
    }
}

#[test]
fn the_grid_and_the_block_are_those_of_the_launch() {
    let device = device!();
    let stream = device.default_stream();
    let mut replay = where_am_i::load(&device).unwrap().replay().unwrap();
    let mut out = stream.alloc_zeros::<u32>(12 * 64).unwrap();
    for (grid, block, last) in [
        (2, 32, [2, 1, 1, 32, 1, 1, 1, 0, 0, 31, 0, 0]),
        (1, 64, [1, 1, 1, 64, 1, 1, 0, 0, 0, 63, 0, 0]),
    ] {
        let arguments = where_am_i { out: &mut out };
        replay.launch(&stream, (grid, block), arguments).unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap()[12 * 63..], last);
    }
}

#[test]
fn a_launch_is_checked_as_that_of_the_kernel() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = saxpy::load(&device).unwrap();
    let mut replay = kernel.replay().unwrap();
    let x = stream.clone_htod(&ramp(10)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(10).unwrap();
    for n in [11, 10, 11] {
        let told = replay.launch(
            &stream,
            cover(n),
            saxpy {
                n,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        );
        let own = kernel.launch(
            &stream,
            cover(n),
            saxpy {
                n,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        );
        let text =
            |result: Result<(), gridcall::LaunchError>| result.map_err(|error| error.to_string());
        assert_eq!(told.is_ok(), n == 10);
        assert_eq!(text(told), text(own));
    }
    let error = replay
        .launch(
            &stream,
            (0, 32),
            saxpy {
                n: 1,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        LaunchErrorKind::Geometry(GeometryError::ZeroGrid { .. })
    ));
    // Nothing is covered, and nothing launched.
    replay
        .launch(
            &stream,
            cover(0),
            saxpy {
                n: 0,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap();
    let expected: Vec<f32> = ramp(10).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_stream_that_is_captured_is_refused() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    let mut replay = fill::load(&device).unwrap().replay().unwrap();
    let mut unsafely = raw_fill::load(&device).unwrap().replay().unwrap();
    let pointer = DevicePointerMut::NULL;
    for _ in 0..2 {
        stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .unwrap();
        let error = replay
            .launch(
                &stream,
                cover(8),
                fill {
                    y: &mut y,
                    v: 1.0,
                    n: 8,
                },
            )
            .unwrap_err();
        assert!(
            matches!(error.kind(), LaunchErrorKind::Capturing),
            "{error}"
        );
        // SAFETY: no element is written.
        let error = unsafe {
            unsafely.launch(
                &stream,
                cover(1),
                raw_fill {
                    y: pointer,
                    v: 1.0,
                    n: 0,
                },
            )
        }
        .unwrap_err();
        assert!(
            matches!(error.kind(), LaunchErrorKind::Capturing),
            "{error}"
        );
        let flags = gridcall::cudarc::driver::sys::CUgraphInstantiate_flags(0);
        stream.end_capture(flags).unwrap();
        replay
            .launch(
                &stream,
                cover(8),
                fill {
                    y: &mut y,
                    v: 2.0,
                    n: 8,
                },
            )
            .unwrap();
        // SAFETY: no element is written.
        unsafe {
            unsafely.launch(
                &stream,
                cover(1),
                raw_fill {
                    y: pointer,
                    v: 1.0,
                    n: 0,
                },
            )
        }
        .unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 8]);
    }
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// There must be `n` elements.
    #[name("fill")]
    unsafe fn raw_fill(y: DevicePointerMut<'_, f32>, v: f32, n: i32);
}

#[test]
fn attributes_are_the_nodes() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let x = stream.clone_htod(&[1.0_f32; 1000]).unwrap();
    let mut parts = stream.alloc_zeros::<f32>(4).unwrap();
    let mut sum = stream.alloc_zeros::<f32>(1).unwrap();
    let mut replay: Replay<grid_sum> = grid_sum::load(&device).unwrap().replay().unwrap();
    for n in [1000_u16, 500, 500] {
        // Other attributes, and the same again.
        for launch in [
            Launch::new(4, 64),
            Launch::new(4, 64).priority(0),
            Launch::new(2, 64),
        ] {
            let (parts, out) = (&mut parts, &mut sum);
            replay
                .launch(
                    &stream,
                    launch,
                    grid_sum {
                        x: &x,
                        parts,
                        out,
                        n: n.into(),
                    },
                )
                .unwrap();
            assert_eq!(stream.clone_dtoh(&sum).unwrap(), [f32::from(n)]);
        }
    }
    let launch = Launch::new(1_000_000, 64);
    let mut many = stream.alloc_zeros::<f32>(1_000_000).unwrap();
    let error = replay
        .launch(
            &stream,
            launch,
            grid_sum {
                x: &x,
                parts: &mut many,
                out: &mut sum,
                n: 1,
            },
        )
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            LaunchErrorKind::Attribute(AttributeError::CooperativeTooLarge { .. })
        ),
        "{error}"
    );
    let event = device.new_event(None).unwrap();
    let launch = Launch::new(4, 64).launch_completion_event(&event);
    let error = replay
        .launch(
            &stream,
            launch,
            grid_sum {
                x: &x,
                parts: &mut parts,
                out: &mut sum,
                n: 1,
            },
        )
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            LaunchErrorKind::Attribute(AttributeError::OfNode { .. })
        ),
        "{error}"
    );
}

#[test]
fn uses_on_other_streams_are_waited_for() {
    let device = device!();
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&theirs, 256).unwrap();
    let mut out = Buffer::<f32>::zeroed(&ours, 256).unwrap();
    let mut replay = copy::load(&device).unwrap().replay().unwrap();
    let mut slow = slow_add::load(&device).unwrap().replay().unwrap();
    for round in 1..4_u8 {
        let arguments = slow_add {
            y: &mut x,
            v: 1.0,
            cycles: LONG,
        };
        slow.launch(&theirs, (1, 256), arguments).unwrap();
        let arguments = copy {
            input: &x,
            out: &mut out,
            n: 256,
        };
        replay.launch(&ours, cover(256), arguments).unwrap();
        // Written again only once it is copied.
        let arguments = slow_add {
            y: &mut x,
            v: 0.0,
            cycles: 0,
        };
        slow.launch(&theirs, (1, 256), arguments).unwrap();
        assert_eq!(out.to_vec().unwrap(), [f32::from(round); 256]);
    }
}

#[test]
fn a_symbol_is_written_between_the_launches_that_use_it() {
    let device = device!(alone);
    let (ours, theirs) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut y = ours.alloc_zeros::<f32>(5).unwrap();
    let mut replay = slow_taps::load(&device).unwrap().replay().unwrap();
    for round in 0..3_u8 {
        let taps = [f32::from(round); 5];
        TAPS.write(&theirs, &taps).unwrap();
        let arguments = slow_taps {
            y: &mut y,
            cycles: LONG,
        };
        replay.launch(&ours, (1, 5), arguments).unwrap();
        TAPS.write(&theirs, &[9.0; 5]).unwrap();
        assert_eq!(ours.clone_dtoh(&y).unwrap(), taps);
    }
}

#[test]
fn a_graph_that_runs_may_be_let_go() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(256).unwrap();
    for _ in 0..4 {
        let mut replay = slow_add::load(&device).unwrap().replay().unwrap();
        let arguments = slow_add {
            y: &mut y,
            v: 1.0,
            cycles: LONG,
        };
        replay.launch(&stream, (1, 256), arguments).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [4.0; 256]);
}

#[test]
fn it_may_be_sent_to_another_thread() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    let mut replay = fill::load(&device).unwrap().replay().unwrap();
    for v in [1.0, 2.0, 3.0] {
        // Each thread begins without a current context.
        (replay, y) = thread::scope(|scope| {
            let stream = &stream;
            scope
                .spawn(move || {
                    let arguments = fill { y: &mut y, v, n: 8 };
                    replay.launch(stream, cover(8), arguments).unwrap();
                    (replay, y)
                })
                .join()
                .unwrap()
        });
        assert_eq!(stream.clone_dtoh(&y).unwrap(), [v; 8]);
    }
}

#[test]
fn default_streams_of_two_devices_are_told_apart() {
    let device = device!();
    if CudaContext::device_count().unwrap() < 2 {
        return;
    }
    let other = CudaContext::new(1).unwrap();
    let streams = [device.default_stream(), other.default_stream()];
    let mut arrays = streams
        .each_ref()
        .map(|stream| stream.alloc_zeros::<f32>(256).unwrap());
    let mut replays =
        [&*device, &other].map(|context| slow_add::load(context).unwrap().replay().unwrap());
    for _ in 0..3 {
        for ((stream, y), replay) in streams.iter().zip(&mut arrays).zip(&mut replays) {
            // The other one's is current.
            let arguments = slow_add {
                y,
                v: 1.0,
                cycles: LONG / 4,
            };
            replay.launch(stream, (1, 256), arguments).unwrap();
        }
    }
    for (stream, y) in streams.iter().zip(&arrays) {
        assert_eq!(stream.clone_dtoh(y).unwrap(), [3.0; 256]);
    }
    // And a stream of the other context is refused.
    let [first, _] = &mut replays;
    let [_, y] = &mut arrays;
    let error = first
        .launch(
            &streams[1],
            (1, 256),
            slow_add {
                y,
                v: 1.0,
                cycles: 0,
            },
        )
        .unwrap_err();
    assert!(
        matches!(error.kind(), LaunchErrorKind::OtherContext { .. }),
        "{error}"
    );
}

/// The emulator's clocks once grew with every launch of a graph.
#[test]
fn many_launches_take_as_long_as_few() {
    let device = device!(alone);
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    let mut replay = fill::load(&device).unwrap().replay().unwrap();
    let mut best_of_four = || {
        let mut five_hundred = |replay: &mut Replay<fill>| {
            let start = Instant::now();
            for n in 0..500_u16 {
                let (y, v) = (&mut y, f32::from(n));
                replay
                    .launch(&stream, cover(8), fill { y, v, n: 8 })
                    .unwrap();
            }
            start.elapsed()
        };
        [(); 4]
            .map(|()| five_hundred(&mut replay))
            .into_iter()
            .min()
    };
    best_of_four();
    let early = best_of_four().unwrap();
    for _ in 0..4 {
        best_of_four();
    }
    let late = best_of_four().unwrap();
    assert!(late < 3 * early, "{early:?}, and later {late:?}");
}
