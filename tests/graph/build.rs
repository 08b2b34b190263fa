//! Nodes, and their order.

use gridcall::{Buffer, Graph, Module, Shaped, cover, kernel};

use crate::kernels::{fill, saxpy, scale, slow_add, slow_copy};

const N: usize = 2048;

#[test]
fn nodes_run_as_if_one_after_another() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; N]).unwrap();
    let mut y = Buffer::<f32>::zeroed(&stream, N).unwrap();
    {
        let mut graph = Graph::new(&device).unwrap();
        let x = graph.read(&x).unwrap();
        let mut y = graph.write(&mut y).unwrap();
        let mut z = graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap();
        // Read after write, write after read, write after write.
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: 100_000,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                slow_copy {
                    x: &y,
                    y: &mut z,
                    n: 2048,
                    cycles: 100_000,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                fill {
                    y: &mut y,
                    v: 5.0,
                    n: 2048,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                saxpy {
                    n: 2048,
                    a: 2.0,
                    x: &x,
                    y: &mut y,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                saxpy {
                    n: 2048,
                    a: 10.0,
                    x: &z,
                    y: &mut y,
                },
            )
            .unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.upload(&stream).unwrap();
        graph.launch(&stream).unwrap();
        // y = 5 + 2·1 + 10·z, z what y was, and 1 more.
        assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [1.0; N]);
        graph.launch(&stream).unwrap();
        assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [18.0; N]);
    }
    assert_eq!(y.to_vec().unwrap(), [187.0; N]);
}

#[test]
fn parts_of_one_array_are_copied_filled_and_cleared() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 8).unwrap())
        .unwrap();
    let bytes = graph
        .own(Buffer::<u8>::zeroed(&stream, 5).unwrap())
        .unwrap();
    let shorts = graph
        .own(Buffer::<u16>::zeroed(&stream, 3).unwrap())
        .unwrap();
    let (head, mut tail) = y.split_at_mut(4).unwrap();
    graph.fill(head, 1.5).unwrap();
    graph
        .add(
            cover(4),
            scale {
                y: &mut head.slice_mut(2..).unwrap(),
                a: 2.0,
                n: 2,
            },
        )
        .unwrap();
    graph.copy(head, tail).unwrap();
    graph
        .add(
            cover(4),
            scale {
                y: &mut tail,
                a: -1.0,
                n: 4,
            },
        )
        .unwrap();
    graph.clear(head.slice_mut(..1).unwrap()).unwrap();
    graph.fill(bytes.slice_mut(1..4).unwrap(), 7).unwrap();
    graph.fill(shorts, 0x1234).unwrap();
    // Nothing to do is no error.
    graph.clear(head.slice_mut(4..).unwrap()).unwrap();
    graph
        .copy(head.slice_mut(..0).unwrap(), tail.slice_mut(..0).unwrap())
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    for _ in 0..2 {
        graph.launch(&stream).unwrap();
        assert_eq!(
            graph.slice(y).unwrap().to_vec().unwrap(),
            [0.0, 1.5, 3.0, 3.0, -1.5, -1.5, -3.0, -3.0]
        );
    }
    let mut buffers = graph.into_buffers();
    assert_eq!(
        buffers.take(bytes).unwrap().to_vec().unwrap(),
        [0, 7, 7, 7, 0]
    );
    assert_eq!(buffers.take(shorts).unwrap().to_vec().unwrap(), [0x1234; 3]);
}

#[test]
fn a_launch_that_covers_nothing_is_a_node_that_does_nothing() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let node = graph
        .add(
            cover(0),
            fill {
                y: &mut y,
                v: 1.0,
                n: 4,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    let mut launch = |n: usize, v| {
        graph
            .update(node, cover(n), fill { y: &mut y, v, n: 4 })
            .unwrap();
        graph.launch(&stream).unwrap();
        graph.slice(y).unwrap().to_vec().unwrap()
    };
    assert_eq!(launch(0, 2.0), [0.0; 4]);
    assert_eq!(launch(4, 3.0), [3.0; 4]);
    assert_eq!(launch(0, 4.0), [3.0; 4]);
    assert_eq!(launch(4, 5.0), [5.0; 4]);
}

#[test]
fn an_empty_graph_can_be_launched() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap().instantiate().unwrap();
    graph.launch(&stream).unwrap();
    graph.run(&stream).unwrap().wait().unwrap();
}

#[kernel]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    #[name("scale")]
    safe fn scale_later(y: &mut [f32], a: f32, n: i32);
}

#[test]
fn kernels_of_modules_are_added_by_their_handle() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let module = Module::from_ptx(&device, include_str!("../../kernels/vector.ptx")).unwrap();
    // SAFETY: the module's kernel is the one declared.
    let kernel = unsafe { scale_later::load_from(&module) }.unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::from_slice(&stream, &[1.0_f32; 4]).unwrap())
        .unwrap();
    kernel
        .add_to(
            &mut graph,
            cover(4),
            scale_later {
                y: &mut y,
                a: 3.0,
                n: 4,
            },
        )
        .unwrap();
    // The graph keeps what it launches.
    drop((kernel, module));
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3.0; 4]);
}

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    pub(crate) safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

#[test]
fn arrays_of_a_graph_can_be_given_a_shape() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 6).unwrap())
        .unwrap();
    let (x, mut transposed) = (
        Shaped::new(x, [2, 3]),
        Shaped::strided(y, 0, [2, 3], [1, 2]),
    );
    graph
        .add(
            (1, (16, 16)),
            copy_2d {
                input: &x,
                out: &mut transposed,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(
        graph.slice(y).unwrap().to_vec().unwrap(),
        [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
    );
}

#[test]
fn what_cannot_be_seen_is_ordered_by_hand() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    for by_edge in [true, false] {
        let mut graph = Graph::new(&device).unwrap();
        let mut y = graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap();
        let mut z = graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap();
        graph.in_order(!by_edge);
        let first = graph
            .add(
                cover(N),
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: 100_000,
                },
            )
            .unwrap();
        // The arrays ask for no order between these.
        let second = graph
            .add(
                cover(N),
                scale {
                    y: &mut z,
                    a: 10.0,
                    n: 2048,
                },
            )
            .unwrap();
        if by_edge {
            graph.order(first, second).unwrap();
            // Once more is no error.
            graph.order(first, second).unwrap();
        }
        let mut graph = graph.instantiate().unwrap();
        // What only nodes that run one after another may do.
        graph
            .update(
                second,
                cover(N),
                scale {
                    y: &mut y,
                    a: 10.0,
                    n: 2048,
                },
            )
            .unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [10.0; N]);
    }
}
