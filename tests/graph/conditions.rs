//! Nodes that run bodies, as kernels decide. Each test has the device alone: a driver of CUDA 13.0 was seen to crash where
//! other threads build and launch other graphs at the same time.

use std::{sync::Arc, thread};

use gridcall::{
    Buffer, Graph, GraphError, GraphErrorKind, GraphExec, GraphSliceMut, cover,
    cudarc::driver::{CudaContext, sys},
    kernel,
};

use crate::kernels::{fill, scale, slow_add};

#[kernel(ptx = "../kernels/conditional.ptx", cuda = "../kernels/conditional.cu")]
unsafe extern "C" {
    /// condition ← value
    #[block(1)]
    pub(crate) safe fn set_condition(condition: GraphCondition, value: u32);

    /// Counts left[0] down, and rounds
    #[requires(left.len() >= 1, rounds.len() >= 1)]
    #[block(1)]
    pub(crate) safe fn count_down(go_on: GraphCondition, left: &mut [u32], rounds: &mut [u32]);

    /// One of Newton's steps towards the square root of a
    #[requires(x.len() >= 1, rounds.len() >= 1)]
    #[block(1)]
    safe fn newton(go_on: GraphCondition, a: f64, x: &mut [f64], rounds: &mut [u32]);

    /// One of Jacobi's steps
    #[requires(b.len() >= n, x.len() >= n, next.len() >= n)]
    safe fn jacobi(b: &[f32], x: &[f32], next: &mut [f32], n: u32);

    /// Goes on as long as x and y differ
    #[requires(x.len() >= n, y.len() >= n, rounds.len() >= 1, grid.x * grid.y * grid.z == 1)]
    safe fn differ(
        go_on: GraphCondition,
        x: &[f32],
        y: &[f32],
        tolerance: f32,
        rounds: &mut [u32],
        n: u32,
    );

    /// a ← 1 by one thread, b ← 1 by another
    #[block(2)]
    safe fn set_both(a: GraphCondition, b: GraphCondition);

    /// All threads set the condition
    unsafe fn race(condition: GraphCondition);
}

/// An array of a graph, of zeros.
macro_rules! zeros {
    ($device:ident, $graph:ident, $ty:ty, $len:expr) => {
        $graph
            .own(Buffer::<$ty>::zeroed(&$device.default_stream(), $len).unwrap())
            .unwrap()
    };
}

#[test]
fn a_loop_runs_until_a_kernel_ends_it() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut left = graph
        .own(Buffer::from_slice(&stream, &[5_u32]).unwrap())
        .unwrap();
    let mut rounds = zeros!(device, graph, u32, 1);
    let go_on = graph.condition(1).unwrap();
    graph
        .while_(go_on, |body| {
            body.add(
                cover(1),
                count_down {
                    go_on,
                    left: &mut left,
                    rounds: &mut rounds,
                },
            )
        })
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    for (count, all) in [(5, 5), (1, 6), (300, 306)] {
        graph
            .slice_mut(left)
            .unwrap()
            .copy_from_slice(&[count])
            .unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(graph.slice(left).unwrap().to_vec().unwrap(), [0]);
        assert_eq!(graph.slice(rounds).unwrap().to_vec().unwrap(), [all]);
    }
}

#[test]
fn a_solver_iterates_until_it_converges() {
    const N: usize = 1000;
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let b: Vec<f32> = (0..N)
        .map(|i| f32::from(u8::try_from(i % 7).unwrap()))
        .collect();
    let array = Buffer::from_slice(&stream, &b).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let given = graph.read(&array).unwrap();
    let mut x = zeros!(device, graph, f32, N);
    let mut y = zeros!(device, graph, f32, N);
    let mut rounds = zeros!(device, graph, u32, 1);
    let go_on = graph.condition(1).unwrap();
    let n = 1000;
    graph
        .while_(go_on, |body| {
            body.add(
                cover(N),
                jacobi {
                    b: &given,
                    x: &x,
                    next: &mut y,
                    n,
                },
            )?;
            body.add(
                cover(N),
                jacobi {
                    b: &given,
                    x: &y,
                    next: &mut x,
                    n,
                },
            )?;
            body.add(
                (1, 256),
                differ {
                    go_on,
                    x: &x,
                    y: &y,
                    tolerance: 1e-5,
                    rounds: &mut rounds,
                    n,
                },
            )
        })
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let x = graph.slice(x).unwrap().to_vec().unwrap();
    let rounds = graph.slice(rounds).unwrap().to_vec().unwrap()[0];
    // Each of two steps a round takes a third from the error.
    assert!((10..20).contains(&rounds), "{rounds}");
    for i in 0..N {
        let at = |i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.0);
        let sum = 3.0 * x[i] - at(i.checked_sub(1)) - at(Some(i + 1));
        assert!((sum - b[i]).abs() < 1e-3, "{i}: {sum}");
    }
}

#[test]
fn a_loop_is_updated() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = Buffer::from_slice(&stream, &[2.0_f64]).unwrap();
    let mut x = graph.own(x).unwrap();
    let mut rounds = zeros!(device, graph, u32, 1);
    let go_on = graph.condition(1).unwrap();
    let (_, node) = graph
        .while_(go_on, |body| {
            body.add(
                cover(1),
                newton {
                    go_on,
                    a: 2.0,
                    x: &mut x,
                    rounds: &mut rounds,
                },
            )
        })
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let root = graph.slice(x).unwrap().to_vec().unwrap()[0];
    assert!((root - 2.0_f64.sqrt()).abs() < 1e-15, "{root}");
    assert_eq!(graph.slice(rounds).unwrap().to_vec().unwrap(), [6]);
    graph
        .update(
            node,
            cover(1),
            newton {
                go_on,
                a: 9.0,
                x: &mut x,
                rounds: &mut rounds,
            },
        )
        .unwrap();
    graph.launch(&stream).unwrap();
    let root = graph.slice(x).unwrap().to_vec().unwrap()[0];
    assert!((root - 3.0).abs() < 1e-15, "{root}");
}

#[test]
fn a_condition_chooses_one_of_two_bodies() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    for default in [0, 1, 7] {
        let mut graph = Graph::new(&device).unwrap();
        let mut y = zeros!(device, graph, f32, 4);
        let condition = graph.condition(default).unwrap();
        let add = |body: &mut Graph<'_>, v| {
            body.add(
                (1, 4),
                slow_add {
                    y: &mut y.clone(),
                    v,
                    cycles: 0,
                },
            )
        };
        let (_, then, _) = graph
            .if_else(condition, |then| add(then, 1.0), |other| add(other, 10.0))
            .unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.launch(&stream).unwrap();
        graph.launch(&stream).unwrap();
        let each = if default == 0 { 10.0 } else { 1.0 };
        assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0 * each; 4]);
        // A node in a body is updated as any.
        let arguments = slow_add {
            y: &mut y,
            v: 5.0,
            cycles: 0,
        };
        graph.update(then, (1, 4), arguments).unwrap();
        graph.launch(&stream).unwrap();
        let last = if default == 0 { 10.0 } else { 5.0 };
        assert_eq!(
            graph.slice(y).unwrap().to_vec().unwrap(),
            [2.0 * each + last; 4]
        );
    }
}

#[test]
fn a_body_runs_or_not_as_a_kernel_before_it_says() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = zeros!(device, graph, u32, 1);
    // Whatever the kernel does not set is as by default at each launch.
    let condition = graph.condition(0).unwrap();
    let set = graph
        .add(
            cover(1),
            set_condition {
                condition,
                value: 1,
            },
        )
        .unwrap();
    graph.if_(condition, |body| body.fill(y, 3)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3]);
    let clear = |graph: &mut GraphExec<'_>| {
        let mut all = graph.slice_mut(y).unwrap();
        all.copy_from_slice(&[0]).unwrap();
    };
    clear(&mut graph);
    let arguments = set_condition {
        condition,
        value: 0,
    };
    graph.update(set, cover(1), arguments).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [0]);
    let arguments = set_condition {
        condition,
        value: 2,
    };
    graph.update(set, cover(1), arguments).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3]);
    // A kernel that is turned off leaves the default.
    clear(&mut graph);
    graph.set_enabled(set, false).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [0]);
}

#[test]
fn a_switch_runs_the_case_that_the_condition_counts() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = zeros!(device, graph, u32, 3);
    let condition = graph.condition(9).unwrap();
    let set = graph
        .add(
            cover(1),
            set_condition {
                condition,
                value: 0,
            },
        )
        .unwrap();
    let (_, fills) = graph
        .switch(condition, 3, |body, case| {
            let case = case as usize;
            body.fill(y.slice_mut(case..=case)?, 1)
        })
        .unwrap();
    assert_eq!(fills.len(), 3);
    let mut graph = graph.instantiate().unwrap();
    for value in 0..5 {
        let arguments = set_condition { condition, value };
        graph.update(set, cover(1), arguments).unwrap();
        graph
            .slice_mut(y)
            .unwrap()
            .copy_from_slice(&[0; 3])
            .unwrap();
        graph.launch(&stream).unwrap();
        let expected: Vec<_> = (0..3).map(|case| u32::from(case == value)).collect();
        assert_eq!(
            graph.slice(y).unwrap().to_vec().unwrap(),
            expected,
            "{value}"
        );
    }
}

#[test]
fn bodies_are_ordered_with_what_is_around_them() {
    const N: usize = 1024;
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = zeros!(device, graph, f32, N);
    let mut z = zeros!(device, graph, f32, N);
    let mut left = graph
        .own(Buffer::from_slice(&stream, &[3_u32]).unwrap())
        .unwrap();
    let mut rounds = zeros!(device, graph, u32, 1);
    let go_on = graph.condition(1).unwrap();
    let add = |graph: &mut Graph<'_>, y: &mut GraphSliceMut<f32>, v| {
        let cycles = 100_000;
        graph.add(cover(N), slow_add { y, v, cycles }).map(drop)
    };
    // Before, within, and after.
    add(&mut graph, &mut y, 1.0).unwrap();
    graph
        .while_(go_on, |body| {
            body.add(
                cover(N),
                scale {
                    y: &mut y,
                    a: 2.0,
                    n: 1024,
                },
            )?;
            add(body, &mut y, 1.0)?;
            // By a copy and a fill, too.
            body.copy(y, z)?;
            body.fill(y, 100.0)?;
            body.copy(z, y)?;
            body.add(
                cover(1),
                count_down {
                    go_on,
                    left: &mut left,
                    rounds: &mut rounds,
                },
            )
        })
        .unwrap();
    graph
        .add(
            cover(N),
            scale {
                y: &mut y,
                a: 10.0,
                n: 1024,
            },
        )
        .unwrap();
    graph
        .add(
            cover(N),
            fill {
                y: &mut z,
                v: 7.0,
                n: 1024,
            },
        )
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    // ((1·2 + 1)·2 + 1)·2 + 1, ten times.
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [150.0; N]);
    assert_eq!(graph.slice(z).unwrap().to_vec().unwrap(), [7.0; N]);
    assert_eq!(graph.slice(rounds).unwrap().to_vec().unwrap(), [3]);
}

#[test]
fn bodies_lie_in_bodies() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let outer_left = Buffer::from_slice(&stream, &[4_u32]).unwrap();
    let mut outer_left = graph.own(outer_left).unwrap();
    let inner_left = zeros!(device, graph, u32, 1);
    let mut outer_rounds = zeros!(device, graph, u32, 1);
    let mut inner_rounds = zeros!(device, graph, u32, 1);
    let (outer, inner) = (graph.condition(1).unwrap(), graph.condition(1).unwrap());
    let (_, fill) = graph
        .while_(outer, |body| {
            // A default counts once a launch: the second loop is begun again by a kernel.
            body.add(
                cover(1),
                set_condition {
                    condition: inner,
                    value: 1,
                },
            )?;
            let fill = body.fill(inner_left, 3)?;
            body.while_(inner, |body| {
                body.add(
                    cover(1),
                    count_down {
                        go_on: inner,
                        left: &mut inner_left.clone(),
                        rounds: &mut inner_rounds,
                    },
                )
            })?;
            body.add(
                cover(1),
                count_down {
                    go_on: outer,
                    left: &mut outer_left,
                    rounds: &mut outer_rounds,
                },
            )?;
            Ok(fill)
        })
        .unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(outer_rounds).unwrap().to_vec().unwrap(), [4]);
    assert_eq!(graph.slice(inner_rounds).unwrap().to_vec().unwrap(), [12]);
    graph.update_fill(fill, inner_left, 5).unwrap();
    let mut left = graph.slice_mut(outer_left).unwrap();
    left.copy_from_slice(&[2]).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(outer_rounds).unwrap().to_vec().unwrap(), [6]);
    assert_eq!(graph.slice(inner_rounds).unwrap().to_vec().unwrap(), [22]);
}

#[test]
fn a_body_can_be_captured() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut y = zeros!(device, graph, f32, 8);
    let condition = graph.condition(1).unwrap();
    graph
        .if_(condition, |body| {
            // SAFETY: all that is enqueued uses an array of the graph.
            unsafe {
                body.capture(&stream, |capture| {
                    let mut lent = capture.slice_mut(y)?;
                    stream.memset_zeros(&mut lent).unwrap();
                    let arguments = slow_add {
                        y: &mut y,
                        v: 2.0,
                        cycles: 10_000,
                    };
                    capture.launch((1, 8), arguments)?;
                    Ok::<_, GraphError>(())
                })
            }
        })
        .unwrap();
    let arguments = scale {
        y: &mut y,
        a: 3.0,
        n: 8,
    };
    graph.add(cover(8), arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [6.0; 8]);
}

#[test]
fn an_update_in_a_body_must_not_conflict_with_what_runs_beside_the_body() {
    let device = device!(alone);
    let mut graph = Graph::new(&device).unwrap();
    let [mut y, mut z, mut w] = [(); 3].map(|()| zeros!(device, graph, f32, 8));
    let condition = graph.condition(1).unwrap();
    let arguments = scale {
        y: &mut y,
        a: 3.0,
        n: 8,
    };
    graph.add(cover(8), arguments).unwrap(); // 0
    let (_, node) = graph
        .if_(condition, |body| {
            let arguments = scale {
                y: &mut z,
                a: 3.0,
                n: 8,
            };
            body.add(cover(8), arguments)
        })
        .unwrap(); // 1, and 2 in its body
    let mut graph = graph.instantiate().unwrap();
    let arguments = scale {
        y: &mut y,
        a: 3.0,
        n: 8,
    };
    let error = graph.update(node, cover(8), arguments).unwrap_err();
    assert!(matches!(
        error.kind(),
        GraphErrorKind::Unordered { node: 2, other: 0 }
    ));
    let arguments = scale {
        y: &mut w,
        a: 3.0,
        n: 8,
    };
    graph.update(node, cover(8), arguments).unwrap();
}

#[test]
fn misuse_of_conditions_is_refused_by_name() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let mut other = Graph::new(&device).unwrap();
    let y = zeros!(device, graph, u32, 1);
    let condition = graph.condition(0).unwrap();
    let foreign = other.condition(0).unwrap();
    let said = |error: GraphError| error.to_string();
    // In a launch, and in another graph.
    let error = set_condition(&stream, cover(1), condition, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `set_condition`: argument `condition` (parameter 0, GraphCondition): it is a condition of \
         a graph, and means nothing outside of the graph's nodes; add the kernel to the graph"
    );
    let arguments = set_condition {
        condition: foreign,
        value: 1,
    };
    assert_eq!(
        said(graph.add(cover(1), arguments).unwrap_err()),
        "kernel `set_condition`: argument `condition` (parameter 0, GraphCondition): it is a condition of \
         another graph; make one of this graph, by `condition`"
    );
    // Twice in one node, whose threads could set it at the same time.
    let arguments = set_both {
        a: condition,
        b: condition,
    };
    assert_eq!(
        said(graph.add(cover(2), arguments).unwrap_err()),
        "kernel `set_both`: argument `b` (parameter 1, GraphCondition): an earlier parameter is the same condition, \
         which two threads could then set at the same time; make one for each"
    );
    let error = graph.if_(foreign, |_| Ok(())).unwrap_err();
    assert_eq!(
        said(error),
        "the condition belongs to another graph; nodes and arrays are used with the graph that made them"
    );
    let error = graph.switch(condition, 0, |_, _| Ok(())).unwrap_err();
    assert!(matches!(error.kind(), GraphErrorKind::NoCases));
    // One node for each condition, and one condition for each node.
    let (node, inner) = graph.if_(condition, |body| body.fill(y, 1)).unwrap();
    let error = graph.while_(condition, |_| Ok(())).unwrap_err();
    assert_eq!(
        said(error),
        "condition 0 of the graph decides node 0 already, and can decide no other; make one for each node, \
         by `condition`"
    );
    let last = graph.fill(y, 2).unwrap();
    let error = graph.order(inner, last).unwrap_err();
    assert_eq!(
        said(error),
        "node 1 and node 2 are in different bodies of the graph; order the nodes that run these bodies"
    );
    graph.order(node, last).unwrap();
    graph.condition(0).unwrap();
    assert_eq!(
        said(graph.instantiate().unwrap_err()),
        "condition 1 of the graph decides no node; give it to `if_`, `while_` or `switch`, or make none"
    );
    // A loop that nothing in it can end.
    let mut graph = Graph::new(&device).unwrap();
    let [condition, inner] = [(); 2].map(|()| graph.condition(1).unwrap());
    let arguments = set_condition {
        condition: inner,
        value: 0,
    };
    let error = graph
        .while_(condition, |body| body.add(cover(1), arguments))
        .unwrap_err();
    assert_eq!(
        said(error),
        "no kernel in the body takes condition 0 of the graph, so that the loop would never end; add one that \
         sets it to 0 in the end"
    );
    let error = graph.instantiate().unwrap_err();
    assert!(matches!(error.kind(), GraphErrorKind::Incomplete));
    // What decides bodies cannot be turned off, nor be given other work.
    let mut graph = Graph::new(&device).unwrap();
    let y = zeros!(device, graph, u32, 1);
    let condition = graph.condition(0).unwrap();
    let (node, ()) = graph.if_(condition, |_| Ok(())).unwrap();
    let mut graph = graph.instantiate().unwrap();
    assert_eq!(
        said(graph.set_enabled(node, false).unwrap_err()),
        "node 0 of the graph cannot be turned off or on: only launches of kernels, copies and fills can"
    );
    assert_eq!(
        said(graph.update_fill(node, y, 1).unwrap_err()),
        "node 0 of the graph neither copies nor fills, and cannot be given what fills; what a node does is \
         decided when the graph is built"
    );
}

#[test]
fn a_body_that_fails_leaves_the_graph_incomplete() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let is_incomplete = |graph: Graph<'_>| {
        let error = graph.instantiate().unwrap_err();
        matches!(error.kind(), GraphErrorKind::Incomplete)
    };
    // By an error,
    let mut graph = Graph::new(&device).unwrap();
    let mut y = zeros!(device, graph, f32, 1);
    let condition = graph.condition(0).unwrap();
    let arguments = scale {
        y: &mut y,
        a: 1.0,
        n: 2,
    };
    assert!(
        graph
            .if_(condition, |body| body.add(cover(1), arguments))
            .is_err()
    );
    assert!(graph.fill(y, 1.0).is_err());
    assert!(graph.condition(0).is_err());
    assert!(is_incomplete(graph));
    // by a panic,
    let mut graph = Graph::new(&device).unwrap();
    let condition = graph.condition(0).unwrap();
    let building = std::panic::AssertUnwindSafe(|| {
        let _ = graph.if_(condition, |_| -> Result<(), GraphError> {
            std::panic::resume_unwind(Box::new(()))
        });
    });
    assert!(std::panic::catch_unwind(building).is_err());
    assert!(is_incomplete(graph));
    // by an error within that is not told,
    let mut graph = Graph::new(&device).unwrap();
    let [outer, inner] = [(); 2].map(|()| graph.condition(0).unwrap());
    let built = graph.if_(outer, |body| {
        let failed = body.if_(inner, |_| Err::<(), _>(GraphErrorKind::NotOwned.into()));
        assert!(failed.is_err());
        Ok(())
    });
    assert!(built.is_err());
    assert!(is_incomplete(graph));
    // or by another graph in its place.
    let mut graph = Graph::new(&device).unwrap();
    let condition = graph.condition(0).unwrap();
    let mut taken = None;
    let built = graph.if_(condition, |body| {
        taken = Some(std::mem::replace(body, Graph::new(&device)?));
        Ok(())
    });
    assert_eq!(
        built.unwrap_err().to_string(),
        "what the body was built in belongs to another graph; nodes and arrays are used with the graph that \
         made them"
    );
    assert!(is_incomplete(taken.unwrap()));
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn what_only_the_host_can_run_is_no_part_of_a_body() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}
    let mut graph = Graph::new(&device).unwrap();
    let condition = graph.condition(0).unwrap();
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        let stream = capture.stream().cu_stream();
        // SAFETY: the stream is borrowed, and the function uses nothing.
        unsafe { sys::cuLaunchHostFunc(stream, Some(nothing), std::ptr::null_mut()) }
            .result()
            .unwrap();
        Ok::<_, GraphError>(())
    };
    // SAFETY: all that is enqueued uses nothing.
    let built = graph.if_(condition, |body| unsafe { body.capture(&stream, record) });
    let error = built.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a function of the host was captured into a body of a node that a condition decides, and only kernels, \
         copies, fills and nodes with bodies can be there; capture it into the graph itself"
    );
}

#[test]
fn a_dropped_graph_ends_its_loop_first() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let mut rounds = Buffer::<u32>::zeroed(&stream, 1).unwrap();
    {
        let mut graph = Graph::new(&device).unwrap();
        let left = Buffer::from_slice(&stream, &[1000_u32]).unwrap();
        let mut left = graph.own(left).unwrap();
        let mut counted = graph.write(&mut rounds).unwrap();
        let go_on = graph.condition(1).unwrap();
        graph
            .while_(go_on, |body| {
                body.add(
                    cover(1),
                    count_down {
                        go_on,
                        left: &mut left,
                        rounds: &mut counted,
                    },
                )
            })
            .unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
    }
    assert_eq!(rounds.to_vec().unwrap(), [1000]);
}

#[test]
fn many_graphs_are_launched_at_once() {
    const EACH: usize = 8;
    let device = device!(alone);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = device.new_stream().unwrap();
                let mut arrays: Vec<_> = (0..EACH)
                    .map(|_| Buffer::<u32>::zeroed(&stream, 1).unwrap())
                    .collect();
                stream.synchronize().unwrap();
                for array in &mut arrays {
                    let stream = device.new_stream().unwrap();
                    let mut graph = Graph::new(&device).unwrap();
                    let left = Buffer::from_slice(&stream, &[200_u32]).unwrap();
                    let mut left = graph.own(left).unwrap();
                    let mut rounds = graph.write(array).unwrap();
                    let go_on = graph.condition(1).unwrap();
                    graph
                        .while_(go_on, |body| {
                            body.add(
                                cover(1),
                                count_down {
                                    go_on,
                                    left: &mut left,
                                    rounds: &mut rounds,
                                },
                            )
                        })
                        .unwrap();
                    graph.instantiate().unwrap().launch(&stream).unwrap();
                }
                for array in arrays {
                    assert_eq!(array.to_vec().unwrap(), [200]);
                }
            });
        }
    });
}

#[test]
fn a_context_is_let_go_with_its_last_graph() {
    let others = device!(alone);
    let device = CudaContext::new(others.ordinal()).unwrap();
    let held = Arc::downgrade(&device);
    for _ in 0..2 {
        let stream = device.new_stream().unwrap();
        let mut graph = Graph::new(&device).unwrap();
        let condition = graph.condition(1).unwrap();
        let y = zeros!(device, graph, u32, 1);
        graph.if_(condition, |body| body.fill(y, 7)).unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [7]);
        stream.synchronize().unwrap();
    }
    drop(device);
    assert!(held.upgrade().is_none());
}
