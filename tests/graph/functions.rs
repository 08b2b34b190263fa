//! Nodes whose kernels call functions that they are given.

use gridcall::{
    ArgumentError, Buffer, DeviceFn, Graph, GraphErrorKind, LaunchErrorKind, Module, cover, kernel,
};

const FUNCTIONS: &str = include_str!("../../kernels/functions.ptx");

#[kernel(ptx = "../kernels/functions.ptx")]
unsafe extern "C" {
    #[name("op_square")]
    static OP_SQUARE: DeviceFn<fn(f32) -> f32>;
    #[name("op_halve")]
    static OP_HALVE: DeviceFn<fn(f32) -> f32>;

    #[requires(y.len() >= n)]
    safe fn map_in_place(op: DeviceFn<fn(f32) -> f32>, y: &mut [f32], n: u32);
}

/// The same in a module of the program's own.
mod later {
    use gridcall::{DeviceFn, kernel};

    #[kernel]
    unsafe extern "C" {
        pub(super) static op_square: DeviceFn<fn(f32) -> f32>;
    }
}

#[test]
fn a_node_calls_a_function_and_is_updated_to_another() {
    let device = device!();
    let stream = device.default_stream();
    let (square, halve) = (
        OP_SQUARE.get(&stream).unwrap(),
        OP_HALVE.get(&stream).unwrap(),
    );
    let mut graph = Graph::new(&device).unwrap();
    let start = Buffer::from_slice(&stream, &[6.0_f32]).unwrap();
    let mut y = graph.own(start).unwrap();
    let node = graph
        .add(
            cover(1),
            map_in_place {
                op: &square,
                y: &mut y,
                n: 1,
            },
        )
        .unwrap();
    let other = Module::from_ptx(&device, FUNCTIONS).unwrap();
    // SAFETY: the text holds what is declared.
    let foreign = unsafe { later::op_square.load_from(&other) }.unwrap();
    let foreign = foreign.get(&stream).unwrap();
    let refused = |kind: &GraphErrorKind| {
        let GraphErrorKind::Launch(error) = kind else {
            return false;
        };
        matches!(
            error.kind(),
            LaunchErrorKind::Argument {
                error: ArgumentError::OtherModule(_),
                ..
            }
        )
    };
    let arguments = map_in_place {
        op: &foreign,
        y: &mut y,
        n: 1,
    };
    let error = graph.add(cover(1), arguments).unwrap_err();
    assert!(refused(error.kind()), "{error}");

    let mut graph = graph.instantiate().unwrap();
    // The node keeps the module of its kernel, and with it the function.
    drop(square);
    graph.launch(&stream).unwrap();
    let arguments = map_in_place {
        op: &foreign,
        y: &mut y,
        n: 1,
    };
    let error = graph.update(node, cover(1), arguments).unwrap_err();
    assert!(refused(error.kind()), "{error}");
    graph.launch(&stream).unwrap();
    let arguments = map_in_place {
        op: &halve,
        y: &mut y,
        n: 1,
    };
    graph.update(node, cover(1), arguments).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [648.0]);
}
