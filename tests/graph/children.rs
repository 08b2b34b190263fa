//! Graphs that are nodes of others. Where there are conditions, a test has the device alone, as those of `conditions`.

use std::sync::Arc;

use gridcall::{
    AsDeviceView as _, Buffer, ChildGraph, Graph, GraphError, GraphErrorKind, GraphSliceMut,
    Launch, Node, cover,
    cudarc::driver::{CudaContext, CudaStream},
    kernel,
};
use gridcall_emulator::Config;

use crate::{
    conditions::{count_down, set_condition},
    kernels::{fill, saxpy, scale, slow_add},
};

const N: usize = 256;

#[kernel(ptx = "../kernels/clusters.ptx")]
unsafe extern "C" {
    #[requires(out.len() >= grid.blocks() * 4)]
    safe fn cluster_shape(out: &mut [u32]);
}

/// `y` added to, after a while.
macro_rules! added {
    ($y:ident, $v:expr) => {
        slow_add {
            y: &mut $y,
            v: $v,
            cycles: 100_000,
        }
    };
}

/// All of `y` multiplied.
macro_rules! scaled {
    ($y:ident, $a:expr) => {
        scale {
            y: &mut $y,
            a: $a,
            n: 256,
        }
    };
}

fn ones(stream: &Arc<CudaStream>) -> Buffer<f32> {
    Buffer::from_slice(stream, &[1.0; N]).unwrap()
}

/// A graph that adds one to each element of an array of its own and doubles it.
fn step(
    device: &Arc<CudaContext>,
    stream: &Arc<CudaStream>,
) -> (
    Graph<'static>,
    GraphSliceMut<f32>,
    Node<slow_add>,
    Node<scale>,
) {
    let mut graph = Graph::new(device).unwrap();
    let mut y = graph.own(ones(stream)).unwrap();
    let add = graph.add(cover(N), added!(y, 1.0)).unwrap();
    let double = graph.add(cover(N), scaled!(y, 2.0)).unwrap();
    (graph, y, add, double)
}

fn refused<T>(result: Result<T, GraphError>) -> GraphError {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error,
    }
}

#[test]
fn a_graph_runs_between_what_it_conflicts_with() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[10.0_f32; N]).unwrap();
    let (mut child, y, add, _) = step(&device, &stream);
    let of_child = child.read(&x).unwrap();
    let mut z = child
        .write(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    let arguments = saxpy {
        n: 256,
        a: 1.0,
        x: &of_child,
        y: &mut z,
    };
    child.add(cover(N), arguments).unwrap();

    let mut graph = Graph::new(&device).unwrap();
    let mut before = graph.own(ones(&stream)).unwrap();
    graph.add(cover(N), added!(before, 5.0)).unwrap();
    let (_, child) = graph.add_graph(child).unwrap();
    let mut y = child.slice_mut(y).unwrap();
    // All of it comes before what is added now.
    graph.add(cover(N), scaled!(y, 10.0)).unwrap();
    let x = child.slice(of_child).unwrap();
    let (add, z) = (child.node(add).unwrap(), child.slice_mut(z).unwrap());
    let sum = graph.add(
        cover(N),
        saxpy {
            n: 256,
            a: 1.0,
            x: &x,
            y: &mut y,
        },
    );
    sum.unwrap();
    graph.copy(y, before).unwrap();

    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let seen = |graph: &gridcall::GraphExec<'_>, y| graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!(seen(&graph, y), [50.0; N]);
    assert_eq!(seen(&graph, before), [50.0; N]);
    graph.update(add, cover(N), added!(y, -50.0)).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(seen(&graph, y), [10.0; N]);
    // What it owned is this graph's, and what it only wrote is nobody's.
    assert!(matches!(
        refused(graph.slice(z)).kind(),
        GraphErrorKind::NotOwned
    ));
    let mut buffers = graph.into_buffers();
    assert_eq!(buffers.take(y).unwrap().to_vec().unwrap(), [10.0; N]);
    assert_eq!(buffers.take(before).unwrap().to_vec().unwrap(), [10.0; N]);
}

#[test]
fn nodes_of_a_graph_that_was_added_are_updated_and_turned_off() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut child = Graph::new(&device).unwrap();
    let mut y = child.own(ones(&stream)).unwrap();
    let set = child.fill(y, 3.0_f32).unwrap();
    let add = child.add(cover(N), added!(y, 1.0)).unwrap();
    let later = child.add(cover(0), scaled!(y, 2.0)).unwrap();
    let z = child.own(ones(&stream)).unwrap();
    let copy = child.copy(y, z).unwrap();

    let mut graph = Graph::new(&device).unwrap();
    let mut other = graph.own(ones(&stream)).unwrap();
    let beside = graph.add(cover(N), added!(other, 1.0)).unwrap();
    let (node, child) = graph.add_graph(child).unwrap();
    let (mut y, z) = (child.slice_mut(y).unwrap(), child.slice_mut(z).unwrap());
    let (set, add) = (child.node(set).unwrap(), child.node(add).unwrap());
    let (later, copy) = (child.node(later).unwrap(), child.node(copy).unwrap());
    let mut graph = graph.instantiate().unwrap();
    let both = [y, z];
    let run = |graph: &mut gridcall::GraphExec<'_>, expected: [f32; 2]| {
        graph.launch(&stream).unwrap();
        for (slice, expected) in both.into_iter().zip(expected) {
            assert_eq!(graph.slice(slice).unwrap().to_vec().unwrap(), [expected; N]);
        }
    };
    run(&mut graph, [4.0, 4.0]);
    graph.update(later, cover(N), scaled!(y, 2.0)).unwrap();
    run(&mut graph, [8.0, 8.0]);
    graph.update(add, cover(N), added!(y, 7.0)).unwrap();
    graph.update_fill(set, y, 1.0_f32).unwrap();
    run(&mut graph, [16.0, 16.0]);
    graph.set_enabled(add, false).unwrap();
    run(&mut graph, [2.0, 2.0]);
    graph.set_enabled(add, true).unwrap();
    graph.set_enabled(copy, false).unwrap();
    run(&mut graph, [16.0, 2.0]);
    graph.update(later, cover(0), scaled!(y, 2.0)).unwrap();
    run(&mut graph, [8.0, 2.0]);
    assert!(matches!(
        refused(graph.set_enabled(node, false)).kind(),
        GraphErrorKind::AlwaysOn { .. }
    ));
    // The graph as a whole may run beside the first node, whose array none of its nodes may take.
    let error = refused(graph.update(add, cover(N), added!(other, 1.0)));
    assert!(
        matches!(
            error.kind(),
            GraphErrorKind::Unordered { node: 3, other: 0 }
        ),
        "{error}"
    );
    let error = refused(graph.update(beside, cover(N), added!(y, 1.0)));
    assert!(
        matches!(
            error.kind(),
            GraphErrorKind::Unordered { node: 0, other: 1 }
        ),
        "{error}"
    );
    run(&mut graph, [8.0, 2.0]);
}

#[test]
fn graphs_are_nodes_at_any_depth() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let pair = |outer: &mut Graph<'static>| {
        let mut found: Vec<(ChildGraph, GraphSliceMut<f32>, Node<slow_add>)> = Vec::new();
        for _ in 0..2 {
            let (graph, y, add, _) = step(&device, &stream);
            let (_, child) = outer.add_graph(graph).unwrap();
            found.push((child, child.slice_mut(y).unwrap(), child.node(add).unwrap()));
        }
        found
    };
    let mut middle = Graph::new(&device).unwrap();
    let first = pair(&mut middle);
    let mut top = Graph::new(&device).unwrap();
    let mut all: Vec<(GraphSliceMut<f32>, Node<slow_add>)> = pair(&mut top)
        .into_iter()
        .map(|(_, y, add)| (y, add))
        .collect();
    let (_, middle) = top.add_graph(middle).unwrap();
    for (_, y, add) in first {
        all.push((middle.slice_mut(y).unwrap(), middle.node(add).unwrap()));
    }
    // An empty one is a node, too.
    top.add_graph(Graph::new(&device).unwrap()).unwrap();
    for (mut y, _) in all.iter().copied() {
        top.add(cover(N), scaled!(y, 3.0)).unwrap();
    }
    let mut top = top.instantiate().unwrap();
    top.launch(&stream).unwrap();
    for (y, _) in &all {
        assert_eq!(top.slice(*y).unwrap().to_vec().unwrap(), [12.0; N]);
    }
    for (index, (mut y, add)) in (0_u8..).zip(all.iter().copied()) {
        top.update(add, cover(N), added!(y, f32::from(index)))
            .unwrap();
    }
    top.launch(&stream).unwrap();
    for (index, (y, _)) in (0_u8..).zip(&all) {
        let expected = (12.0 + f32::from(index)) * 6.0;
        assert_eq!(top.slice(*y).unwrap().to_vec().unwrap(), [expected; N]);
    }
}

#[test]
fn a_graph_in_a_body_runs_in_each_round() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let (child, y, add, _) = step(&device, &stream);
    let mut graph = Graph::new(&device).unwrap();
    let left = Buffer::from_slice(&stream, &[3_u32]).unwrap();
    let mut left = graph.own(left).unwrap();
    let mut rounds = graph
        .own(Buffer::<u32>::zeroed(&stream, 1).unwrap())
        .unwrap();
    let go_on = graph.condition(1).unwrap();
    let body = |body: &mut Graph<'static>| {
        let (_, child) = body.add_graph(child)?;
        let left = &mut left;
        let rounds = &mut rounds;
        body.add(
            cover(1),
            count_down {
                go_on,
                left,
                rounds,
            },
        )?;
        Ok(child)
    };
    let (_, child) = graph.while_(go_on, body).unwrap();
    let (mut y, add) = (child.slice_mut(y).unwrap(), child.node(add).unwrap());
    // The loop as a whole comes before.
    graph.add(cover(N), scaled!(y, 100.0)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let ran = graph.slice(rounds).unwrap().to_vec().unwrap()[0];
    let mut expected = 1.0_f32;
    for _ in 0..ran {
        expected = (expected + 1.0) * 2.0;
    }
    assert!(ran > 1, "{ran} rounds");
    assert_eq!(
        graph.slice(y).unwrap().to_vec().unwrap(),
        [100.0 * expected; N]
    );
    graph
        .slice_mut(left)
        .unwrap()
        .copy_from_slice(&[1])
        .unwrap();
    graph.update(add, cover(N), added!(y, 2.0)).unwrap();
    graph.launch(&stream).unwrap();
    let again = graph.slice(rounds).unwrap().to_vec().unwrap()[0] - ran;
    let mut expected = 100.0 * expected;
    for _ in 0..again {
        expected = (expected + 2.0) * 2.0;
    }
    assert_eq!(
        graph.slice(y).unwrap().to_vec().unwrap(),
        [100.0 * expected; N]
    );
}

#[test]
fn the_attributes_of_nodes_come_along() {
    let device = device!();
    if device.compute_capability().unwrap() < (9, 0) {
        return;
    }
    let stream = device.new_stream().unwrap();
    let mut child = Graph::new(&device).unwrap();
    let out = Buffer::<u32>::zeroed(&stream, 16).unwrap();
    let mut out = child.own(out).unwrap();
    let launch = Launch::new(4, 1).cluster(2);
    let arguments = cluster_shape { out: &mut out };
    let node = child.add(launch, arguments).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let (_, child) = graph.add_graph(child).unwrap();
    let (mut out, node) = (child.slice_mut(out).unwrap(), child.node(node).unwrap());
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let expected = [2, 1, 1, 0, 2, 1, 1, 1, 2, 1, 1, 0, 2, 1, 1, 1];
    assert_eq!(graph.slice(out).unwrap().to_vec().unwrap(), expected);
    let arguments = cluster_shape { out: &mut out };
    graph.update(node, launch, arguments).unwrap();
    let arguments = cluster_shape { out: &mut out };
    assert!(graph.update(node, Launch::new(4, 1), arguments).is_err());
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(out).unwrap().to_vec().unwrap(), expected);
}

#[test]
fn what_belongs_to_neither_graph_is_refused() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let (child, mut y, add, double) = step(&device, &stream);
    let (other, mut z, of_other, _) = step(&device, &stream);
    let mut graph = Graph::new(&device).unwrap();
    let (_, child) = graph.add_graph(child).unwrap();
    // By the names that they had.
    let error = refused(graph.add(cover(N), scaled!(y, 2.0)));
    assert!(
        error.to_string().contains("an array of another graph"),
        "{error}"
    );
    for error in [
        refused(child.node(of_other)),
        refused(child.slice_mut(z)),
        refused(child.slice(z.as_slice())),
    ] {
        assert!(
            matches!(error.kind(), GraphErrorKind::OtherGraph { .. }),
            "{error}"
        );
    }
    let error = refused(graph.add(cover(N), scaled!(z, 2.0)));
    assert!(
        error.to_string().contains("an array of another graph"),
        "{error}"
    );
    drop(other);
    let (add, double) = (child.node(add).unwrap(), child.node(double).unwrap());
    assert_eq!(
        refused(graph.order(add, double)).to_string(),
        "node 1 and node 2 are of a graph that was added to this one, in the order that they had; \
         order them before it is added"
    );
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    y = child.slice_mut(y).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [4.0; N]);
}

#[test]
fn a_graph_with_conditions_is_no_node() {
    let device = device!(alone);
    let mut child = Graph::new(&device).unwrap();
    let condition = child.condition(1).unwrap();
    let arguments = set_condition {
        condition,
        value: 0,
    };
    child.add(cover(1), arguments).unwrap();
    child.if_(condition, |_| Ok(())).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    assert_eq!(
        refused(graph.add_graph(child)).to_string(),
        "the graph that is added has conditions, which the driver takes in no graph that is a node; \
         add its nodes to this graph itself"
    );
    graph.instantiate().unwrap();
}

#[test]
fn a_graph_of_another_context_is_refused() {
    let device = device!();
    let Ok(other) = gridcall_emulator::Device::with(&Config::default()) else {
        return;
    };
    let Ok(context) = CudaContext::new(other.ordinal()) else {
        return;
    };
    let mut graph = Graph::new(&device).unwrap();
    let error = refused(graph.add_graph(Graph::new(&context).unwrap()));
    assert_eq!(
        error.to_string(),
        format!(
            "the graph is of a context of device 0, the one that is added of another, of device {}; \
             make both for one context",
            context.ordinal()
        )
    );
}

#[test]
fn the_borrows_of_a_graph_are_those_of_what_it_is_added_to() {
    let device = device!();
    let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut y = ones(&a);
    let address = y.describe().unwrap().pointer();
    let mut graph = Graph::new(&device).unwrap();
    {
        let mut child = Graph::new(&device).unwrap();
        let mut slice = child.write(&mut y).unwrap();
        child.add(cover(N), added!(slice, 1.0)).unwrap();
        graph.add_graph(child).unwrap();
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&a).unwrap();
    drop(graph);
    // Whoever uses the array next waits for the graph, on another stream too.
    fill(&b, cover(1), &mut y, 7.0, 1).unwrap();
    let seen = y.to_vec().unwrap();
    assert_eq!(seen[0], 7.0);
    assert_eq!(seen[1..], [2.0; N - 1]);
    assert_eq!(y.describe().unwrap().pointer(), address);
}
