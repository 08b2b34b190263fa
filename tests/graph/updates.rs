//! Nodes that get other arguments.

use gridcall::{Buffer, Graph, GraphErrorKind, Shaped, cover, kernel};

use crate::{
    build::copy_2d,
    kernels::{fill, saxpy, slow_add, slow_copy},
};

const N: usize = 1024;

#[test]
fn a_node_gets_other_scalars_arrays_and_another_shape() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let a = Buffer::from_slice(&stream, &[1.0_f32; N]).unwrap();
    let b = Buffer::from_slice(&stream, &[100.0_f32; N]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let (a, b) = (graph.read(&a).unwrap(), graph.read(&b).unwrap());
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    let node = graph
        .add(
            cover(N),
            saxpy {
                n: 1024,
                a: 1.0,
                x: &a,
                y: &mut y,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    graph
        .update(
            node,
            cover(N),
            saxpy {
                n: 1024,
                a: 2.0,
                x: &a,
                y: &mut y,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3.0; N]);
    graph
        .update(
            node,
            cover(N),
            saxpy {
                n: 1024,
                a: 1.0,
                x: &b,
                y: &mut y,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [103.0; N]);
    let mut tail = y.slice_mut(N / 2..).unwrap();
    graph
        .update(
            node,
            cover(N / 2).block(64),
            saxpy {
                n: 512,
                a: 1.0,
                x: &a,
                y: &mut tail,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!(found[..N / 2], [103.0; N / 2]);
    assert_eq!(found[N / 2..], [104.0; N / 2]);
}

#[test]
fn a_launch_that_runs_keeps_its_arguments() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
        .unwrap();
    let node = graph
        .add(
            cover(N),
            slow_add {
                y: &mut y,
                v: 1.0,
                cycles: 1_000_000,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    for step in 0..10_u8 {
        let v = f32::from(step);
        graph
            .update(
                node,
                cover(N),
                slow_add {
                    y: &mut y,
                    v,
                    cycles: 10_000,
                },
            )
            .unwrap();
        graph.launch(&stream).unwrap();
    }
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [45.0; N]);
}

#[test]
fn an_update_that_would_race_is_refused() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let [mut y, mut z, mut w] = [(); 3].map(|()| {
        graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap()
    });
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
    let beside = graph
        .add(
            cover(N),
            fill {
                y: &mut z,
                v: 7.0,
                n: 1024,
            },
        )
        .unwrap();
    let arguments = slow_copy {
        x: &y,
        y: &mut w,
        n: 1024,
        cycles: 0,
    };
    let last = graph.add(cover(N), arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let error = graph
        .update(
            beside,
            cover(N),
            fill {
                y: &mut y,
                v: 7.0,
                n: 1024,
            },
        )
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Unordered { node: 1, other: 0 }
    ));
    assert_eq!(
        error.to_string(),
        "node 1 would use what node 0 uses, one of them writes to it, and they may run at the same \
         time; put one after the other by `order` before the graph is instantiated, or build the \
         graph with these arguments"
    );
    let error = graph
        .update(
            beside,
            cover(N),
            fill {
                y: &mut w,
                v: 7.0,
                n: 1024,
            },
        )
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Unordered { node: 1, other: 2 }
    ));
    let arguments = slow_copy {
        x: &z,
        y: &mut w,
        n: 1024,
        cycles: 0,
    };
    let error = graph.update(last, cover(N), arguments).unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Unordered { node: 2, other: 1 }
    ));
    // All is as it was.
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(w).unwrap().to_vec().unwrap(), [1.0; N]);
    assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [7.0; N]);
}

#[test]
fn what_comes_after_a_node_orders_what_it_is_updated_to() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let [mut y, mut w] = [(); 2].map(|()| {
        graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap()
    });
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
    let arguments = slow_copy {
        x: &y,
        y: &mut w,
        n: 1024,
        cycles: 0,
    };
    graph.add(cover(N), arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let arguments = slow_add {
        y: &mut w,
        v: 5.0,
        cycles: 100_000,
    };
    graph.update(first, cover(N), arguments).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(w).unwrap().to_vec().unwrap(), [0.0; N]);
}

#[test]
fn what_an_update_uses_counts_for_the_next() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let [mut x, mut y, mut z] = [(); 3].map(|()| {
        graph
            .own(Buffer::<f32>::zeroed(&stream, N).unwrap())
            .unwrap()
    });
    let first = graph
        .add(
            cover(N),
            fill {
                y: &mut x,
                v: 1.0,
                n: 1024,
            },
        )
        .unwrap();
    let second = graph
        .add(
            cover(N),
            fill {
                y: &mut y,
                v: 2.0,
                n: 1024,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph
        .update(
            first,
            cover(N),
            fill {
                y: &mut z,
                v: 1.0,
                n: 1024,
            },
        )
        .unwrap();
    let error = graph
        .update(
            second,
            cover(N),
            fill {
                y: &mut z,
                v: 2.0,
                n: 1024,
            },
        )
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Unordered { node: 1, other: 0 }
    ));
    // Nobody uses this one now.
    graph
        .update(
            second,
            cover(N),
            fill {
                y: &mut x,
                v: 2.0,
                n: 1024,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(x).unwrap().to_vec().unwrap(), [2.0; N]);
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [0.0; N]);
    assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [1.0; N]);
}

#[test]
fn arrays_that_come_to_overlap_are_refused() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 12).unwrap())
        .unwrap();
    // The same parts of one array throughout, seen otherwise.
    let rows = |from| Shaped::strided(y, from, [2, 3], [3, 1]);
    let input = &rows(0);
    let node = graph
        .add(
            (1, (16, 16)),
            copy_2d {
                input,
                out: &mut rows(6),
            },
        )
        .unwrap();
    let (mut head, tail) = y.split_at_mut(6).unwrap();
    let apart = graph
        .add(
            cover(6),
            saxpy {
                n: 6,
                a: 1.0,
                x: &tail,
                y: &mut head,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    let arguments = copy_2d {
        input,
        out: &mut rows(6),
    };
    graph.update(node, (1, (16, 16)), arguments).unwrap();
    let error = graph
        .update(
            node,
            (1, (16, 16)),
            copy_2d {
                input,
                out: &mut rows(5),
            },
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the array overlaps argument `input`"),
        "{error}"
    );
    graph
        .update(
            apart,
            cover(6),
            saxpy {
                n: 6,
                a: 2.0,
                x: &tail,
                y: &mut head,
            },
        )
        .unwrap();
    let overlapping = y.slice_mut(5..11).unwrap();
    let error = graph
        .update(
            apart,
            cover(6),
            saxpy {
                n: 6,
                a: 2.0,
                x: &overlapping,
                y: &mut head,
            },
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the array overlaps argument `x`"),
        "{error}"
    );
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    #[requires(x_or_null.is_none() || x_or_null.len() >= n, out.len() >= n)]
    safe fn maybe(x_or_null: Option<&[f32]>, out: &mut [f32], n: i32);
}

#[test]
fn an_array_may_be_left_out_and_come_again() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let mut out = graph
        .own(Buffer::<f32>::zeroed(&stream, 3).unwrap())
        .unwrap();
    let n = 3;
    let arguments = maybe {
        x_or_null: None,
        out: &mut out,
        n,
    };
    let node = graph.add(cover(n), arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    // Each twice: the second time it is as before.
    for _ in 0..2 {
        for x_or_null in [None, None, Some(&x as _), Some(&x as _)] {
            let expected = match x_or_null {
                None => [-1.0; 3],
                Some(_) => [1.0, 2.0, 3.0],
            };
            let arguments = maybe {
                x_or_null,
                out: &mut out,
                n,
            };
            graph.update(node, cover(n), arguments).unwrap();
            graph.launch(&stream).unwrap();
            assert_eq!(graph.slice(out).unwrap().to_vec().unwrap(), expected);
        }
    }
}

#[test]
fn arguments_as_before_are_checked_all_the_same() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let array = Buffer::from_slice(&stream, &[1.0_f32; 4]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut other = Graph::new(&device).unwrap();
    let (x, foreign) = (graph.read(&array).unwrap(), other.read(&array).unwrap());
    let mut y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let (n, a) = (4, 1.0);
    let arguments = saxpy {
        n,
        a,
        x: &x,
        y: &mut y,
    };
    let node = graph.add(cover(4), arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let arguments = saxpy {
        n: 5,
        a,
        x: &x,
        y: &mut y,
    };
    let error = graph.update(node, cover(4), arguments).unwrap_err();
    assert!(error.to_string().contains("x.len() is 4"), "{error}");
    // The same memory, but not as an array of the graph.
    let arguments = saxpy {
        n,
        a,
        x: &array,
        y: &mut y,
    };
    let error = graph.update(node, cover(4), arguments).unwrap_err();
    assert!(
        error.to_string().contains("is not one of the graph"),
        "{error}"
    );
    let arguments = saxpy {
        n,
        a,
        x: &foreign,
        y: &mut y,
    };
    let error = graph.update(node, cover(4), arguments).unwrap_err();
    assert!(error.to_string().contains("of another graph"), "{error}");
    // Less of it, and nothing of it.
    for len in [3, 0] {
        let x = x.slice(..len).unwrap();
        let arguments = saxpy {
            n,
            a,
            x: &x,
            y: &mut y,
        };
        let error = graph.update(node, cover(4), arguments).unwrap_err();
        let found = format!("x.len() is {len}");
        assert!(error.to_string().contains(&found), "{error}");
    }
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 4]);
}

#[test]
fn of_an_array_with_a_shape_what_it_reaches_counts() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &[1.0_f32; 6]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 12).unwrap())
        .unwrap();
    let (mut head, _) = y.split_at_mut(6).unwrap();
    let (n, v) = (6, 2.0);
    let arguments = fill { y: &mut head, v, n };
    graph.add(cover(n), arguments).unwrap();
    // Beside it, though both are of one array.
    let input = &Shaped::new(x, [2, 3]);
    let mut rows = Shaped::strided(y, 6, [2, 3], [3, 1]);
    let out = &mut rows;
    let node = graph.add((1, (16, 16)), copy_2d { input, out }).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let mut rows = Shaped::strided(y, 5, [2, 3], [3, 1]);
    let out = &mut rows;
    let error = graph
        .update(node, (1, (16, 16)), copy_2d { input, out })
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            GraphErrorKind::Unordered { node: 1, other: 0 }
        ),
        "{error}"
    );
    graph.launch(&stream).unwrap();
    let found = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!(found[..6], [2.0; 6]);
    assert_eq!(found[6..], [1.0; 6]);
}

#[test]
fn copies_and_fills_get_other_elements() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let from: Vec<u16> = (1..=8).collect();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph
        .own(Buffer::from_slice(&stream, &from).unwrap())
        .unwrap();
    let y = graph
        .own(Buffer::<u16>::zeroed(&stream, 8).unwrap())
        .unwrap();
    let clear = graph.clear(y).unwrap();
    let copy = graph.copy(x, y).unwrap();
    let fill = graph.fill(y.slice_mut(..2).unwrap(), 90).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let launch = |graph: &mut gridcall::GraphExec<'_>| {
        graph.launch(&stream).unwrap();
        graph.slice(y).unwrap().to_vec().unwrap()
    };
    assert_eq!(launch(&mut graph), [90, 90, 3, 4, 5, 6, 7, 8]);
    // Another number of elements, other places and another value.
    let part = |range: std::ops::Range<usize>| y.slice_mut(range).unwrap();
    let from = |range: std::ops::Range<usize>| x.slice_mut(range).unwrap();
    graph.update_copy(copy, from(0..3), part(5..8)).unwrap();
    graph.update_fill(fill, part(2..5), 70).unwrap();
    assert_eq!(launch(&mut graph), [0, 0, 70, 70, 70, 1, 2, 3]);
    // None, and some again.
    graph.update_copy(copy, from(0..0), part(1..1)).unwrap();
    graph.update_clear(fill, part(0..0)).unwrap();
    assert_eq!(launch(&mut graph), [0; 8]);
    graph.update_copy(copy, x, y).unwrap();
    assert_eq!(launch(&mut graph), [1, 2, 3, 4, 5, 6, 7, 8]);
    // A fill that fills with bytes fills with words, and the other way round.
    graph.update_fill(clear, y, 0x0102).unwrap();
    graph.update_copy(copy, from(0..1), part(0..1)).unwrap();
    graph.update_clear(fill, part(7..8)).unwrap();
    let expected = [1, 0x0102, 0x0102, 0x0102, 0x0102, 0x0102, 0x0102, 0];
    assert_eq!(launch(&mut graph), expected);
}

#[test]
fn updates_of_copies_and_fills_are_checked() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut other = Graph::new(&device).unwrap();
    let [x, y, mut z] = [(); 3].map(|()| {
        graph
            .own(Buffer::<f32>::zeroed(&stream, 8).unwrap())
            .unwrap()
    });
    let foreign = other
        .own(Buffer::<f32>::zeroed(&stream, 8).unwrap())
        .unwrap();
    let copy = graph.copy(x, y).unwrap(); // 0
    graph
        .add(
            cover(8),
            fill {
                y: &mut z,
                v: 1.0,
                n: 8,
            },
        )
        .unwrap(); // 1, beside
    let none = y.slice_mut(..0).unwrap();
    let nothing = graph.fill(none, 1.0).unwrap(); // 2
    let mut graph = graph.instantiate().unwrap();
    let said = |result: Result<(), gridcall::GraphError>| result.unwrap_err().to_string();
    assert!(said(graph.update_copy(copy, x, z)).starts_with("node 0 would use what node 1 uses"));
    assert!(said(graph.update_copy(copy, foreign, y)).starts_with("the array belongs to another"));
    let short = y.slice_mut(1..).unwrap();
    assert!(said(graph.update_copy(copy, x, short)).starts_with("cannot copy 8 elements to 7"));
    let late = x.slice_mut(1..5).unwrap();
    let early = x.as_slice().slice(..4).unwrap();
    assert!(said(graph.update_copy(copy, early, late)).contains("overlap"));
    assert_eq!(
        said(graph.update_fill(copy, y, 2.0)),
        "node 0 of the graph copies, and cannot be given what fills; what a node does is decided when the \
         graph is built"
    );
    assert!(
        said(graph.update_clear(nothing, y))
            .starts_with("node 2 of the graph was built of no elements and does nothing, ")
    );
    // It is what it was.
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [1.0; 8]);
}

#[test]
fn nodes_are_turned_off_and_on() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = graph
        .own(Buffer::<f32>::zeroed(&stream, 4).unwrap())
        .unwrap();
    let first = graph.fill(y, 1.0).unwrap();
    macro_rules! add {
        ($v:expr) => {
            slow_add {
                y: &mut { y },
                v: $v,
                cycles: 0,
            }
        };
    }
    let node = graph.add((1, 4), add!(1.0)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let launch = |graph: &mut gridcall::GraphExec<'_>| {
        graph.launch(&stream).unwrap();
        graph.slice(y).unwrap().to_vec().unwrap()
    };
    assert_eq!(launch(&mut graph), [2.0; 4]);
    graph.set_enabled(node, false).unwrap();
    assert_eq!(launch(&mut graph), [1.0; 4]);
    graph.set_enabled(first, false).unwrap();
    graph.set_enabled(node, true).unwrap();
    assert_eq!(launch(&mut graph), [2.0; 4]);
    // What is off stays so when it is updated, and has its new arguments when it is on again.
    graph.set_enabled(node, false).unwrap();
    graph.update(node, (1, 4), add!(10.0)).unwrap();
    graph.update_fill(first, y, 5.0).unwrap();
    assert_eq!(launch(&mut graph), [2.0; 4]);
    graph.set_enabled(node, true).unwrap();
    assert_eq!(launch(&mut graph), [12.0; 4]);
    // Off, of nothing, and of something again.
    graph.set_enabled(node, false).unwrap();
    graph.update(node, cover(0), add!(10.0)).unwrap();
    graph.set_enabled(node, true).unwrap();
    assert_eq!(launch(&mut graph), [12.0; 4]);
    graph.set_enabled(node, false).unwrap();
    graph.update(node, (1, 4), add!(100.0)).unwrap();
    assert_eq!(launch(&mut graph), [12.0; 4]);
    graph.set_enabled(node, true).unwrap();
    graph.set_enabled(first, true).unwrap();
    assert_eq!(launch(&mut graph), [105.0; 4]);
}
