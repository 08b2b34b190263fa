//! Misuse, which ends in a message before the driver.

use gridcall::{
    Buffer, Graph, GraphErrorKind, LaunchErrorKind, cover,
    cudarc::driver::{CudaStream, sys},
};

use crate::kernels::{copy, fill, saxpy, scale};

#[test]
fn an_array_that_is_not_of_the_graph_is_refused() {
    let device = device!();
    for stream in [device.default_stream(), device.new_stream().unwrap()] {
        let mut graph = Graph::new(&device).unwrap();
        let mut other = Graph::new(&device).unwrap();
        let x = Buffer::from_slice(&stream, &[1.0_f32; 4]).unwrap();
        let slice = stream.clone_htod(&[1.0_f32; 4]).unwrap();
        let mut y = graph
            .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
            .unwrap();
        let z = other
            .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
            .unwrap();
        for error in [
            graph
                .add(
                    cover(4),
                    saxpy {
                        n: 4,
                        a: 1.0,
                        x: &x,
                        y: &mut y,
                    },
                )
                .unwrap_err(),
            graph
                .add(
                    cover(4),
                    saxpy {
                        n: 4,
                        a: 1.0,
                        x: &slice,
                        y: &mut y,
                    },
                )
                .unwrap_err(),
        ] {
            assert_eq!(
                error.to_string(),
                "kernel `saxpy`: argument `x` (parameter 2, &[f32]): the array is not one of the \
                 graph; give it to the graph by `read`, `write` or `own`, and pass what that returns"
            );
        }
        let error = graph
            .add(
                cover(4),
                saxpy {
                    n: 4,
                    a: 1.0,
                    x: &z,
                    y: &mut y,
                },
            )
            .unwrap_err();
        assert!(matches!(error.kind(), GraphErrorKind::Launch(_)));
        assert_eq!(
            error.to_string(),
            "kernel `saxpy`: argument `x` (parameter 2, &[f32]): it stands for an array of another \
             graph; register the array with this one, by `read`, `write` or `own`"
        );
        let error = graph.copy(z, y).unwrap_err();
        assert!(matches!(
            error.kind(),
            GraphErrorKind::OtherGraph { what: "the array" }
        ));
        assert!(graph.fill(z, 1.0).is_err());
        // The graph is as good as before.
        graph
            .add(
                cover(4),
                fill {
                    y: &mut y,
                    v: 2.0,
                    n: 4,
                },
            )
            .unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0; 4]);
        assert!(graph.slice(z).is_err());
    }
}

#[test]
fn what_stands_for_an_array_is_refused_by_a_launch() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let error = fill(&stream, cover(4), &mut y, 1.0, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fill`: argument `y` (parameter 0, &mut [f32]): it stands for an array of a graph, \
         and means nothing outside of the graph's nodes; pass the array itself"
    );
}

#[test]
fn arguments_are_checked_as_at_a_launch() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; 8]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 8).unwrap())
        .unwrap();
    let error = graph
        .add(
            cover(8),
            saxpy {
                n: 9,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: the launch needs `x.len() >= n`, but n is 9 and x.len() is 8"
    );
    let error = graph
        .add(
            (1, 2048),
            saxpy {
                n: 8,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("block.x is 2048, the device allows 1024"),
        "{error}"
    );
    // Parts that overlap, one of them written.
    let (reads, mut writes) = (y.as_slice().slice(..5).unwrap(), y.slice_mut(4..).unwrap());
    let error = graph
        .add(
            cover(4),
            saxpy {
                n: 4,
                a: 1.0,
                x: &reads,
                y: &mut writes,
            },
        )
        .unwrap_err();
    assert!(
        error.to_string().starts_with(
            "kernel `saxpy`: argument `y` (parameter 3, &mut [f32]): the array overlaps argument `x`"
        ),
        "{error}"
    );
    let node = graph
        .add(
            cover(8),
            saxpy {
                n: 8,
                a: 1.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap();
    let error = graph.copy(reads, y.slice_mut(..5).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), GraphErrorKind::Overlap));
    let error = graph.copy(reads, writes).unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Length { from: 5, to: 4 }
    ));
    assert!(y.slice_mut(3..9).is_err());
    let mut graph = graph.instantiate().unwrap();
    let error = graph
        .update(
            node,
            cover(8),
            saxpy {
                n: 9,
                a: 5.0,
                x: &x,
                y: &mut y,
            },
        )
        .unwrap_err();
    assert!(error.to_string().contains("the launch needs"), "{error}");
    // The node is as it was.
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 8]);
}

#[test]
fn a_node_is_of_its_graph_and_keeps_its_place() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut other = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let mut z = other
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let first = graph
        .add(
            cover(4),
            fill {
                y: &mut y,
                v: 1.0,
                n: 4,
            },
        )
        .unwrap();
    let second = graph
        .add(
            cover(4),
            scale {
                y: &mut y,
                a: 1.0,
                n: 4,
            },
        )
        .unwrap();
    let foreign = other
        .add(
            cover(4),
            fill {
                y: &mut z,
                v: 1.0,
                n: 4,
            },
        )
        .unwrap();
    assert!(matches!(
        graph.order(second, first).unwrap_err().kind(),
        GraphErrorKind::Backwards {
            before: 1,
            after: 0
        }
    ));
    assert!(matches!(
        graph.order(first, foreign).unwrap_err().kind(),
        GraphErrorKind::OtherGraph { what: "the node" }
    ));
    let mut graph = graph.instantiate().unwrap();
    let arguments = fill {
        y: &mut y,
        v: 1.0,
        n: 4,
    };
    assert!(matches!(
        graph
            .update(foreign, cover(4), arguments)
            .unwrap_err()
            .kind(),
        GraphErrorKind::OtherGraph { what: "the node" }
    ));
}

#[test]
fn an_array_is_given_to_a_graph_as_it_can_be_used_there() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = stream.clone_htod(&[0.0_f32; 12]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let rows = gridcall::Shaped::strided(&x, 0, [3, 2], [4, 1]);
    let error = graph.read::<f32, _>(rows).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("array 0 of the graph: the array is not contiguous: shape [3, 2]"),
        "{error}"
    );
    graph.read(&x).unwrap();
}

#[test]
fn buffers_are_given_back_once_and_as_what_they_are() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut borrowed = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.write(&mut borrowed).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let mut other = Graph::new(&device).unwrap();
    let z = other
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    assert!(matches!(
        graph.slice(x).unwrap_err().kind(),
        GraphErrorKind::NotOwned
    ));
    assert!(matches!(
        graph.slice_mut(x).unwrap_err().kind(),
        GraphErrorKind::NotOwned
    ));
    let mut buffers = graph.into_buffers();
    assert!(buffers.take(x).is_err());
    assert!(buffers.take(z).is_err());
    assert_eq!(buffers.take(y.slice_mut(2..).unwrap()).unwrap().len(), 4);
    let error = buffers.take(y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the graph owns no such buffer: only what was given to it by `own` can be looked at, and be \
         taken back once"
    );
}

#[test]
fn a_stream_that_is_being_captured_is_refused_and_the_capture_lives() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    graph
        .add(
            cover(4),
            fill {
                y: &mut y,
                v: 1.0,
                n: 4,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    begin(&stream);
    assert!(matches!(
        graph.launch(&stream).unwrap_err().kind(),
        GraphErrorKind::Capturing
    ));
    assert!(matches!(
        graph.upload(&stream).unwrap_err().kind(),
        GraphErrorKind::Capturing
    ));
    let mut other = Graph::new(&device).unwrap();
    // SAFETY: nothing is enqueued.
    let error = unsafe { other.capture(&stream, |_| Ok::<_, gridcall::GraphError>(())) };
    assert!(matches!(
        error.unwrap_err().kind(),
        GraphErrorKind::Capturing
    ));
    stream
        .end_capture(sys::CUgraphInstantiate_flags(0))
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 4]);
}

fn begin(stream: &CudaStream) {
    stream
        .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .unwrap();
}

#[test]
fn an_error_that_was_stored_is_told_of() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap().instantiate().unwrap();
    device.record_err::<()>(Err(gridcall::cudarc::driver::DriverError(
        sys::CUresult::CUDA_ERROR_NOT_READY,
    )));
    let error = graph.launch(&stream).unwrap_err();
    assert!(matches!(error.kind(), GraphErrorKind::Earlier(_)));
    graph.launch(&stream).unwrap();
}

#[test]
fn a_plain_launch_still_refuses_a_capture() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; 4]).unwrap();
    let mut y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    copy::load(&device).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    // SAFETY: nothing is enqueued.
    let refused = unsafe {
        graph.capture(&stream, |capture| {
            Ok::<_, gridcall::GraphError>(copy(capture.stream(), cover(4), &x, &mut y, 4))
        })
    };
    let error = refused.unwrap().unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Capturing));
}
