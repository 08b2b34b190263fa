//! What others enqueue, recorded into a graph.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gridcall::{
    Buffer, Graph, GraphError, GraphErrorKind, Texture, cover,
    cudarc::driver::{CudaStream, sys},
    kernel,
};

use crate::kernels::{fill, saxpy, scale, slow_add};

const N: usize = 1024;

/// Whether the stream is as free as before.
fn is_free(stream: &CudaStream) -> bool {
    stream.capture_status().unwrap() == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

#[test]
fn what_is_captured_runs_between_what_is_added() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut x = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    graph
        .add(
            cover(N),
            slow_add {
                y: &mut x,
                v: 1.0,
                cycles: 200_000,
            },
        )
        .unwrap();
    graph
        .add(
            cover(N),
            fill {
                y: &mut y,
                v: 50.0,
                n: 1024,
            },
        )
        .unwrap();
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        // y ← x by cudarc, then a kernel of ours, then cudarc again.
        let (head, tail) = y.split_at_mut(N / 2)?;
        stream.memcpy_dtod(&capture.slice(x)?, &mut capture.slice_mut(y)?)?;
        let node = capture.launch(
            cover(N),
            scale {
                y: &mut y,
                a: 10.0,
                n: 1024,
            },
        )?;
        stream.memset_zeros(&mut capture.slice_mut(tail)?)?;
        assert_eq!(head.len(), N / 2);
        Ok::<_, Box<dyn std::error::Error>>(node)
    };
    // SAFETY: all that is enqueued uses arrays of the graph.
    let node = unsafe { graph.capture(&stream, record) }.unwrap();
    graph
        .add(
            cover(N),
            saxpy {
                n: 1024,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap();
    assert!(is_free(&stream));
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!((found[0], found[N - 1]), (11.0, 1.0));
    // A node that was captured is updated as others are.
    graph
        .update(
            node,
            cover(N),
            scale {
                y: &mut y,
                a: 100.0,
                n: 1024,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!((found[0], found[N - 1]), (202.0, 2.0));
}

#[test]
fn a_capture_of_nothing_changes_nothing() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    for _ in 0..2 {
        // SAFETY: nothing is enqueued.
        unsafe { graph.capture(&stream, |_| Ok::<_, GraphError>(())) }.unwrap();
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: 0,
                },
            )
            .unwrap();
        let mut half = y.slice_mut(N / 2..).unwrap();
        graph
            .add(
                cover(N / 2),
                scale {
                    y: &mut half,
                    a: 2.0,
                    n: 512,
                },
            )
            .unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!((found[0], found[N - 1]), (2.0, 6.0));
}

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x * block.x)]
    #[name("slow_add")]
    safe fn add_loaded_late(y: &mut [f32], v: f32, cycles: i64);
}

#[test]
fn a_kernel_is_loaded_during_a_capture_without_harm() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        capture.launch(
            cover(N),
            add_loaded_late {
                y: &mut y,
                v: 1.0,
                cycles: 0,
            },
        )?;
        capture.launch(
            cover(0),
            fill {
                y: &mut y,
                v: 9.0,
                n: 1024,
            },
        )?;
        Ok::<_, GraphError>(())
    };
    // SAFETY: nothing but kernels of this crate is enqueued.
    unsafe { graph.capture(&stream, record) }.unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0; N]);
}

#[test]
fn a_capture_that_fails_is_ended_and_told_of() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    // SAFETY: nothing that works is enqueued.
    let failed = unsafe {
        graph.capture(&stream, |capture| {
            assert!(capture.stream().synchronize().is_err());
            Ok::<_, GraphError>(())
        })
    };
    let error = failed.unwrap_err();
    assert!(
        matches!(error.kind(), GraphErrorKind::Capture { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("the capture into the graph failed: "),
        "{error}"
    );
    assert!(is_free(&stream));
    assert!(matches!(
        graph.instantiate().unwrap_err().kind(),
        GraphErrorKind::Incomplete
    ));
}

#[test]
fn a_capture_that_is_left_is_ended() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    // SAFETY: nothing is enqueued.
    let left = unsafe {
        graph.capture(&stream, |_| {
            Err::<(), Box<dyn std::error::Error>>("no".into())
        })
    };
    assert_eq!(left.unwrap_err().to_string(), "no");
    assert!(is_free(&stream));
    let error = graph
        .clear(graph_array(&mut Graph::new(&device).unwrap(), &stream))
        .unwrap_err();
    assert!(matches!(error.kind(), GraphErrorKind::OtherGraph { .. }));
    let mut graph = Graph::new(&device).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: nothing is enqueued.
        let _ = unsafe {
            graph.capture(&stream, |_| -> Result<(), GraphError> {
                panic!("on purpose")
            })
        };
    }));
    assert!(panicked.is_err());
    assert!(is_free(&stream));
    let y = graph_array(&mut graph, &stream);
    assert!(matches!(
        graph.clear(y).unwrap_err().kind(),
        GraphErrorKind::Incomplete
    ));
}

fn graph_array(
    graph: &mut Graph<'_>,
    stream: &std::sync::Arc<CudaStream>,
) -> gridcall::GraphSliceMut<f32> {
    graph
        .own(Buffer::<f32>::zeroed(stream, 4).unwrap())
        .unwrap()
}

#[test]
fn a_texture_that_is_dropped_leaves_a_capture_alone() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let table = Buffer::from_slice(&stream, &[1.0_f32; 4]).unwrap();
    let texture = Texture::linear(&device, &table).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph_array(&mut graph, &stream);
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        drop(texture);
        capture.launch(
            cover(4),
            fill {
                y: &mut y,
                v: 2.0,
                n: 4,
            },
        )
    };
    // SAFETY: nothing is enqueued but a launch by the capture.
    unsafe { graph.capture(&stream, record) }.unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0; 4]);
    // After a capture textures are let go of again.
    drop(Texture::linear(&device, &table).unwrap());
}

#[test]
fn the_default_stream_cannot_be_captured() {
    let device = device!(alone);
    let stream = device.default_stream();
    let mut graph = Graph::new(&device).unwrap();
    // SAFETY: nothing is enqueued.
    let error = unsafe { graph.capture(&stream, |_| Ok::<_, GraphError>(())) }.unwrap_err();
    assert!(
        error.to_string().contains("cuStreamBeginCaptureToGraph"),
        "{error}"
    );
}

#[test]
fn an_array_is_lent_to_the_captured_stream_alone() {
    let device = device!(alone);
    let [stream, other] = [(); 2].map(|()| device.new_stream().unwrap());
    let mut graph = Graph::new(&device).unwrap();
    let y = graph_array(&mut graph, &stream);
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        Ok::<_, GraphError>(other.memset_zeros(&mut capture.slice_mut(y)?))
    };
    // SAFETY: what is enqueued is refused.
    let refused = unsafe { graph.capture(&stream, record) };
    assert!(refused.unwrap().is_err() || device.check_err().is_err());
}
