//! Every launch of a graph is one use of each of its arrays.

use std::{mem, sync::Arc, thread};

use gridcall::{
    Buffer, Graph, GraphExec, GraphSliceMut, after, cover, cudarc::driver::CudaContext,
};

use crate::kernels::{copy, fill, saxpy, scale, slow_add, slow_copy};

const N: usize = 2048;
const CYCLES: i64 = 400_000;

/// y ← y + 1, slowly, twice.
fn adding(device: &Arc<CudaContext>, y: Buffer<f32>) -> (GraphExec<'static>, GraphSliceMut<f32>) {
    let mut graph = Graph::new(device).unwrap();
    let mut y = graph.own(y).unwrap();
    for _ in 0..2 {
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: CYCLES,
                },
            )
            .unwrap();
    }
    (graph.instantiate().unwrap(), y)
}

#[test]
fn a_graph_waits_for_other_streams_and_they_for_it() {
    let device = device!();
    let [a, b, c] = [(); 3].map(|()| device.new_stream().unwrap());
    for legacy in [false, true] {
        let a = if legacy {
            device.default_stream()
        } else {
            a.clone()
        };
        let mut x = Buffer::from_slice(&a, &[1.0_f32; N]).unwrap();
        slow_add(&b, cover(N), &mut x, 1.0, CYCLES).unwrap();
        let mut y = Buffer::<f32>::zeroed(&a, N).unwrap();
        slow_add(&c, cover(N), &mut y, 3.0, CYCLES).unwrap();
        let mut graph = Graph::new(&device).unwrap();
        let mut read = graph.read(&x).unwrap();
        let mut written = graph.write(&mut y).unwrap();
        graph
            .add(
                cover(N),
                saxpy {
                    n: 2048,
                    a: 10.0,
                    x: &read,
                    y: &mut written,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut written,
                    v: 1.0,
                    cycles: CYCLES,
                },
            )
            .unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.launch(&a).unwrap();
        // Another stream, with nothing between.
        graph.launch(&b).unwrap();
        // Readers beside the graph.
        let mut z = Buffer::<f32>::zeroed(&c, N).unwrap();
        copy(&c, cover(N), &x, &mut z, 2048).unwrap();
        drop(graph);
        read = read.slice(..).unwrap();
        let _ = read;
        slow_copy(&c, cover(N), &y, &mut z, 2048, 0).unwrap();
        // Write after read, by the graph.
        fill(&c, cover(N), &mut x, 0.0, 2048).unwrap();
        assert_eq!(z.to_vec().unwrap(), [45.0; N]);
        assert_eq!(y.to_vec().unwrap(), [45.0; N]);
    }
}

#[test]
fn arrays_of_cudarc_are_ordered_too() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let x = a.clone_htod(&[1.0_f32; N]).unwrap();
    let mut y = b.clone_htod(&[0.0_f32; N]).unwrap();
    slow_add(&b, cover(N), &mut y, 1.0, CYCLES).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    {
        let x = graph.read(&x).unwrap();
        let mut y = graph.write(&mut y).unwrap();
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
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: CYCLES,
                },
            )
            .unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&a).unwrap();
    graph.launch(&b).unwrap();
    graph.launch(&a).unwrap();
    drop(graph);
    assert_eq!(b.clone_dtoh(&y).unwrap(), [10.0; N]);
    drop(x);
}

#[test]
fn one_stream_of_cudarc_is_alone() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32; N]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
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
    let mut graph = graph.instantiate().unwrap();
    for _ in 0..3 {
        graph.launch(&stream).unwrap();
    }
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [6.0; N]);
}

#[test]
fn a_graph_that_is_dropped_while_it_runs_frees_nothing_too_early() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let mut y = Buffer::<f32>::zeroed(&a, N).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    {
        let mut own = graph.own(Buffer::<f32>::zeroed(&a, N).unwrap()).unwrap();
        let mut y = graph.write(&mut y).unwrap();
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut own,
                    v: 1.0,
                    cycles: CYCLES,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                saxpy {
                    n: 2048,
                    a: 1.0,
                    x: &own,
                    y: &mut y,
                },
            )
            .unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&a).unwrap();
    graph.launch(&b).unwrap();
    drop(graph);
    // Takes the place of what was freed.
    let mut other = Buffer::<f32>::zeroed(&b, N).unwrap();
    fill(&b, cover(N), &mut other, 100.0, 2048).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

#[test]
fn a_graph_that_is_forgotten_while_it_runs_leaks_and_corrupts_nothing() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let x = Buffer::from_slice(&a, &[1.0_f32; N]).unwrap();
    let mut y = Buffer::<f32>::zeroed(&b, N).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    {
        let x = graph.read(&x).unwrap();
        let mut y = graph.write(&mut y).unwrap();
        graph
            .add(
                cover(N),
                slow_add {
                    y: &mut y,
                    v: 1.0,
                    cycles: CYCLES,
                },
            )
            .unwrap();
        graph
            .add(
                cover(N),
                saxpy {
                    n: 2048,
                    a: 1.0,
                    x: &x,
                    y: &mut y,
                },
            )
            .unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&a).unwrap();
    mem::forget(graph);
    drop(x);
    slow_add(&b, cover(N), &mut y, 1.0, 0).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

#[test]
fn a_graph_is_awaited_and_given_back() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let (mut graph, y) = adding(&device, Buffer::<f32>::zeroed(&stream, N).unwrap());
    for _ in 0..3 {
        graph = pollster::block_on(graph.run(&stream).unwrap()).unwrap();
    }
    graph = graph.run(&stream).unwrap().wait().unwrap();
    let buffer = graph.into_buffers().take(y).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [8.0; N]);
    // A future that is dropped, and one that is forgotten.
    let (graph, _) = adding(&device, buffer);
    drop(graph.run(&stream).unwrap());
    let (graph, _) = adding(&device, Buffer::<f32>::zeroed(&stream, N).unwrap());
    mem::forget(graph.run(&stream).unwrap());
    stream.synchronize().unwrap();
    // One that borrows.
    let mut y = Buffer::<f32>::zeroed(&stream, N).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut token = graph.write(&mut y).unwrap();
    graph
        .add(
            cover(N),
            fill {
                y: &mut token,
                v: 1.0,
                n: 2048,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    pollster::block_on(after(&stream, ()).unwrap()).unwrap();
}

#[test]
fn owned_buffers_are_written_between_launches() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let (mut graph, y) = adding(&device, Buffer::<f32>::zeroed(&a, N).unwrap());
    graph.launch(&a).unwrap();
    let mut tail = graph.slice_mut(y.slice_mut(N / 2..).unwrap()).unwrap();
    slow_add(&b, (4, 256), &mut tail, 10.0, CYCLES).unwrap();
    scale(&b, cover(N / 2), &mut tail, 2.0, 1024).unwrap();
    graph.launch(&a).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!((found[0], found[N - 1]), (4.0, 26.0));
    let mut first = graph.slice_mut(y.slice_mut(..1).unwrap()).unwrap();
    first.copy_from_slice(&[50.0]).unwrap();
    graph.launch(&b).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!((found[0], found[1]), (52.0, 6.0));
}

#[test]
fn owned_buffers_are_read_between_launches() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let mut z = Buffer::<f32>::zeroed(&b, N).unwrap();
    let (mut graph, y) = adding(&device, Buffer::<f32>::zeroed(&a, N).unwrap());
    graph.launch(&a).unwrap();
    let read = graph.slice(y).unwrap();
    slow_copy(&b, cover(N), &read, &mut z, 2048, CYCLES).unwrap();
    graph.launch(&a).unwrap();
    let buffer = graph.into_buffers().take(y).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [4.0; N]);
    assert_eq!(z.to_vec().unwrap(), [2.0; N]);
}

#[test]
fn a_launch_on_another_stream_counts_too() {
    let device = device!();
    let [a, b, c] = [(); 3].map(|()| device.new_stream().unwrap());
    let (mut graph, y) = adding(&device, Buffer::<f32>::zeroed(&a, N).unwrap());
    for stream in [&a, &a, &b, &a] {
        graph.launch(stream).unwrap();
    }
    let buffer = graph.into_buffers().take(y).unwrap();
    let mut z = Buffer::<f32>::zeroed(&c, N).unwrap();
    copy(&c, cover(N), &buffer, &mut z, 2048).unwrap();
    assert_eq!(z.to_vec().unwrap(), [8.0; N]);
}

#[test]
fn graphs_are_launched_by_several_threads() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; N]).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let stream = device.new_stream().unwrap();
                let mut graph = Graph::new(&device).unwrap();
                let x = graph.read(&x).unwrap();
                let mut y = graph
                    .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
                    .unwrap();
                graph
                    .add(
                        cover(N),
                        saxpy {
                            n: 2048,
                            a: 1.0,
                            x: &x,
                            y: &mut y,
                        },
                    )
                    .unwrap();
                let mut graph = graph.instantiate().unwrap();
                for _ in 0..5 {
                    graph.launch(&stream).unwrap();
                }
                assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [5.0; N]);
            });
        }
    });
}

#[test]
fn more_arrays_than_guards_at_a_time() {
    let device = device!();
    let [a, b] = [(); 2].map(|()| device.new_stream().unwrap());
    let mut arrays: Vec<_> = (0..20).map(|_| a.alloc_zeros::<f32>(16).unwrap()).collect();
    let mut graph = Graph::new(&device).unwrap();
    for array in &mut arrays {
        let mut array = graph.write(array).unwrap();
        graph
            .add(
                (1, 16),
                slow_add {
                    y: &mut array,
                    v: 1.0,
                    cycles: 10_000,
                },
            )
            .unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&a).unwrap();
    graph.launch(&b).unwrap();
    drop(graph);
    for array in &arrays {
        assert_eq!(a.clone_dtoh(array).unwrap(), [2.0; 16]);
    }
}
