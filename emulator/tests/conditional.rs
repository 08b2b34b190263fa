//! Conditional nodes of graphs: what they run, and what is refused, as a driver of CUDA 13.0 answers on an H200.

mod common;

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use common::{INVALID_VALUE, SUCCESS, cu, fresh, kinds, with};
use cudarc::driver::sys;
use gridcall_emulator::{Config, Order, ReportKind};

const INVALID_CONTEXT: u32 = 201;
const NOT_SUPPORTED: u32 = 801;

const IF: u32 = 0;
const WHILE: u32 = 1;
const SWITCH: u32 = 2;

/// `CUgraphNodeParams` of a conditional node.
#[repr(C)]
struct Params {
    ty: i32,
    reserved: [i32; 3],
    handle: u64,
    kind: u32,
    size: u32,
    bodies: *mut sys::CUgraph,
    context: sys::CUcontext,
    rest: [u64; 26],
}

struct Functions {
    set: sys::CUfunction,
    count_down: sys::CUfunction,
    race: sys::CUfunction,
}

fn functions() -> Functions {
    let text = CString::new(include_str!("../../kernels/conditional.ptx")).unwrap();
    let mut module = null_mut();
    let loaded = cu!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    assert_eq!(loaded, SUCCESS);
    let [set, count_down, race] = [c"set_condition", c"count_down", c"race"].map(|name| {
        let mut function = null_mut();
        let found = cu!(cuModuleGetFunction(
            &raw mut function,
            module,
            name.as_ptr()
        ));
        assert_eq!(found, SUCCESS);
        function
    });
    Functions {
        set,
        count_down,
        race,
    }
}

fn graph() -> sys::CUgraph {
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    graph
}

fn current() -> sys::CUcontext {
    let mut context = null_mut();
    assert_eq!(cu!(cuCtxGetCurrent(&raw mut context)), SUCCESS);
    context
}

fn condition(graph: sys::CUgraph, default: u32) -> u64 {
    let mut handle = 0;
    let made = cu!(cuGraphConditionalHandleCreate(
        &raw mut handle,
        graph,
        current(),
        default,
        1
    ));
    assert_eq!(made, SUCCESS);
    handle
}

/// Adds a conditional node; the code, the node and its bodies.
fn add(
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
    (handle, kind, size): (u64, u32, u32),
) -> (u32, sys::CUgraphNode, Vec<sys::CUgraph>) {
    let mut params = Params {
        ty: 13,
        reserved: [0; 3],
        handle,
        kind,
        size,
        bodies: null_mut(),
        context: current(),
        rest: [0; 26],
    };
    let mut node = null_mut();
    let code = cu!(cuGraphAddNode_v2(
        &raw mut node,
        graph,
        after.as_ptr(),
        null(),
        after.len(),
        (&raw mut params).cast()
    ));
    let bodies = if code == SUCCESS {
        // SAFETY: the driver gave the address of so many graphs.
        unsafe { std::slice::from_raw_parts(params.bodies, size as usize) }.to_vec()
    } else {
        Vec::new()
    };
    (code, node, bodies)
}

/// Adds a kernel of one block of so many threads, whose parameters are all of 8 bytes or fewer.
fn kernel(
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
    function: sys::CUfunction,
    threads: u32,
    arguments: &mut [u64],
) -> sys::CUgraphNode {
    let mut pointers: Vec<*mut c_void> = arguments
        .iter_mut()
        .map(|argument| std::ptr::from_mut(argument).cast())
        .collect();
    let params = sys::CUDA_KERNEL_NODE_PARAMS_v2 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: pointers.as_mut_ptr(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    let mut node = null_mut();
    let added = cu!(cuGraphAddKernelNode_v2(
        &raw mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &raw const params
    ));
    assert_eq!(added, SUCCESS);
    node
}

fn fill(graph: sys::CUgraph, to: u64, value: u32) -> sys::CUgraphNode {
    let params = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value,
        elementSize: 4,
        width: 1,
        height: 1,
    };
    let mut node = null_mut();
    let added = cu!(cuGraphAddMemsetNode(
        &raw mut node,
        graph,
        null(),
        0,
        &raw const params,
        current()
    ));
    assert_eq!(added, SUCCESS);
    node
}

fn instantiate(graph: sys::CUgraph) -> Result<sys::CUgraphExec, u32> {
    let mut exec = null_mut();
    match cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)) {
        SUCCESS => Ok(exec),
        code => Err(code),
    }
}

/// `CUgraphInstantiateResult`.
fn why_not(graph: sys::CUgraph) -> u32 {
    let mut exec = null_mut();
    // SAFETY: a structure of integers and pointers.
    let mut params: sys::CUDA_GRAPH_INSTANTIATE_PARAMS = unsafe { std::mem::zeroed() };
    let code = cu!(cuGraphInstantiateWithParams(
        &raw mut exec,
        graph,
        &raw mut params
    ));
    assert_eq!(code, INVALID_VALUE);
    params.result_out as u32
}

fn launch(exec: sys::CUgraphExec) -> u32 {
    assert_eq!(cu!(cuGraphLaunch(exec, null_mut())), SUCCESS);
    cu!(cuStreamSynchronize(null_mut()))
}

fn memory(values: &[u32]) -> u64 {
    let mut pointer = 0;
    assert_eq!(
        cu!(cuMemAlloc_v2(&raw mut pointer, size_of_val(values))),
        SUCCESS
    );
    let copied = cu!(cuMemcpyHtoD_v2(
        pointer,
        values.as_ptr().cast(),
        size_of_val(values)
    ));
    assert_eq!(copied, SUCCESS);
    pointer
}

fn read<const N: usize>(pointer: u64) -> [u32; N] {
    let mut values = [0; N];
    let copied = cu!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), pointer, 4 * N));
    assert_eq!(copied, SUCCESS);
    values
}

#[test]
fn a_condition_decides_what_runs() {
    for order in [Order::Lazy, Order::Eager, Order::Random(5)] {
        let (device, _context) = with(&Config::default().order(order));
        let functions = functions();
        for (kind, size) in [(IF, 1), (IF, 2), (SWITCH, 3)] {
            for value in 0..4_u32 {
                let (y, graph) = (memory(&[0; 3]), graph());
                let handle = condition(graph, 0);
                let set = kernel(graph, &[], functions.set, 1, &mut [handle, value.into()]);
                let (code, _, bodies) = add(graph, &[set], (handle, kind, size));
                assert_eq!(code, SUCCESS);
                for (index, body) in (0_u64..).zip(&bodies) {
                    fill(*body, y + 4 * index, 1);
                }
                let exec = instantiate(graph).unwrap();
                assert_eq!(launch(exec), SUCCESS);
                let body = match kind {
                    IF => u32::from(value == 0),
                    _ => value,
                };
                let expected = [0, 1, 2].map(|index| u32::from(index == body && index < size));
                assert_eq!(read(y), expected, "{kind} {size} {value}");
                assert_eq!(cu!(cuGraphExecDestroy(exec)), SUCCESS);
                assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
            }
        }
        assert_eq!(kinds(&device), []);
    }
}

#[test]
fn a_loop_runs_as_long_as_its_condition_is_set() {
    for order in [Order::Lazy, Order::Eager, Order::Random(5)] {
        let (device, _context) = with(&Config::default().order(order));
        let functions = functions();
        let (graph, left, rounds) = (graph(), memory(&[5]), memory(&[0]));
        let handle = condition(graph, 1);
        let (code, _, bodies) = add(graph, &[], (handle, WHILE, 1));
        assert_eq!(code, SUCCESS);
        kernel(
            bodies[0],
            &[],
            functions.count_down,
            1,
            &mut [handle, left, rounds],
        );
        let exec = instantiate(graph).unwrap();
        assert_eq!(launch(exec), SUCCESS);
        assert_eq!((read(left), read(rounds)), ([0], [5]));
        // The default counts again at the next launch, also of a graph that is no more.
        assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
        let seven = [7_u32];
        assert_eq!(
            cu!(cuMemcpyHtoD_v2(left, seven.as_ptr().cast(), 4)),
            SUCCESS
        );
        assert_eq!(launch(exec), SUCCESS);
        assert_eq!((read(left), read(rounds)), ([0], [12]));
        assert_eq!(kinds(&device), []);
    }
}

#[test]
fn a_default_counts_once_a_launch() {
    let (_device, _context) = fresh();
    let functions = functions();
    let (graph, counts) = (graph(), memory(&[2, 0, 3, 0]));
    let (outer, inner) = (condition(graph, 1), condition(graph, 1));
    let (_, _, body) = add(graph, &[], (outer, WHILE, 1));
    let count = &mut [outer, counts, counts + 4];
    let node = kernel(body[0], &[], functions.count_down, 1, count);
    let (_, _, body) = add(body[0], &[node], (inner, WHILE, 1));
    let count = &mut [inner, counts + 8, counts + 12];
    kernel(body[0], &[], functions.count_down, 1, count);
    assert_eq!(launch(instantiate(graph).unwrap()), SUCCESS);
    assert_eq!(read(counts), [0, 2, 0, 3]);
}

#[test]
fn bodies_are_ordered_with_what_comes_after() {
    let (device, context) = fresh();
    let functions = functions();
    let (graph, y) = (graph(), memory(&[0; 2]));
    let handle = condition(graph, 1);
    let (_, _, bodies) = add(graph, &[], (handle, IF, 1));
    // Two in the body that nothing puts in an order, and one in another stream.
    fill(bodies[0], y, 1);
    let exec = instantiate(graph).unwrap();
    let (one, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    assert_eq!(cu!(cuGraphLaunch(exec, one.cu_stream())), SUCCESS);
    other.join(&one).unwrap();
    assert_eq!(cu!(cuMemsetD32Async(y, 2, 1, other.cu_stream())), SUCCESS);
    other.synchronize().unwrap();
    assert_eq!((read(y), kinds(&device)), ([2], vec![]));
    assert_eq!(cu!(cuGraphLaunch(exec, one.cu_stream())), SUCCESS);
    assert_eq!(cu!(cuMemsetD32Async(y, 2, 1, other.cu_stream())), SUCCESS);
    context.synchronize().unwrap();
    assert_eq!(kinds(&device), [ReportKind::Conflict]);
    let _ = device.take_reports();
    let graph = self::graph();
    let handle = condition(graph, 1);
    let (_, _, bodies) = add(graph, &[], (handle, IF, 1));
    fill(bodies[0], y, 1);
    fill(bodies[0], y, 2);
    assert_eq!(launch(instantiate(graph).unwrap()), SUCCESS);
    assert_eq!(kinds(&device), [ReportKind::Conflict]);
    let _ = device.take_reports();
    // Rounds follow each other.
    let (graph, left, rounds) = (self::graph(), memory(&[3]), memory(&[0]));
    let handle = condition(graph, 1);
    let (_, _, bodies) = add(graph, &[], (handle, WHILE, 1));
    kernel(
        bodies[0],
        &[],
        functions.count_down,
        1,
        &mut [handle, left, rounds],
    );
    assert_eq!(launch(instantiate(graph).unwrap()), SUCCESS);
    assert_eq!(kinds(&device), []);
}

#[test]
fn what_cannot_be_added_is_refused() {
    let (_device, _context) = fresh();
    let functions = functions();
    let (graph, other) = (graph(), graph());
    let handle = condition(graph, 0);
    for (kind, size) in [
        (IF, 0),
        (IF, 3),
        (WHILE, 0),
        (WHILE, 2),
        (SWITCH, 0),
        (3, 1),
    ] {
        let (code, ..) = add(graph, &[], (handle, kind, size));
        assert_eq!(code, INVALID_VALUE, "{kind} {size}");
    }
    assert_eq!(add(other, &[], (handle, IF, 1)).0, INVALID_VALUE);
    let mut made = 0;
    let create = |made: &mut u64, context, flags| {
        cu!(cuGraphConditionalHandleCreate(
            made, graph, context, 0, flags
        ))
    };
    assert_eq!(create(&mut made, null_mut(), 1), INVALID_CONTEXT);
    assert_eq!(create(&mut made, current(), 2), INVALID_VALUE);
    // Unused, used, and used again.
    assert_eq!(instantiate(graph), Err(INVALID_VALUE));
    assert_eq!(why_not(graph), 5);
    let (code, node, bodies) = add(graph, &[], (handle, SWITCH, 2));
    assert_eq!(code, SUCCESS);
    assert_eq!(add(graph, &[], (handle, IF, 1)).0, INVALID_VALUE);
    assert_eq!(cu!(cuGraphDestroy(bodies[1])), INVALID_VALUE);
    assert_eq!(instantiate(bodies[1]), Err(NOT_SUPPORTED));
    let exec = instantiate(graph).unwrap();
    assert_eq!(cu!(cuGraphNodeSetEnabled(exec, node, 0)), INVALID_VALUE);
    assert_eq!(instantiate(graph), Err(NOT_SUPPORTED));
    assert_eq!(cu!(cuGraphExecDestroy(exec)), SUCCESS);
    assert_eq!(cu!(cuGraphDestroyNode(node)), SUCCESS);
    assert_eq!(cu!(cuGraphDestroy(bodies[0])), INVALID_VALUE);
    assert_eq!(instantiate(graph), Err(INVALID_VALUE));
    // What runs on the host is in no body.
    let (_, _, bodies) = add(graph, &[], (handle, IF, 1));
    kernel(bodies[0], &[], functions.set, 1, &mut [handle, 0]);
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    let params = sys::CUDA_HOST_NODE_PARAMS {
        fn_: Some(nothing),
        userData: null_mut(),
    };
    let mut node = null_mut();
    let added = cu!(cuGraphAddHostNode(
        &raw mut node,
        bodies[0],
        null(),
        0,
        &raw const params
    ));
    assert_eq!(added, SUCCESS);
    assert_eq!(instantiate(graph), Err(INVALID_VALUE));
    assert_eq!(why_not(graph), 3);
    assert_eq!(cu!(cuGraphDestroyNode(node)), SUCCESS);
    assert!(instantiate(graph).is_ok());
}

#[test]
fn a_condition_is_set_in_its_graph_alone() {
    const ILLEGAL_ADDRESS: u32 = 700;
    // In a launch, in a graph without conditions, and one that the graph does not have.
    for (in_graph, handle) in [(false, 1), (true, 1), (true, 2), (true, 0)] {
        let (device, _context) = fresh();
        let functions = functions();
        let graph = graph();
        let mut arguments = [handle, 1];
        let code = if in_graph {
            let own = (handle != 1).then(|| condition(graph, 0));
            if let Some(own) = own {
                assert_eq!(add(graph, &[], (own, IF, 1)).0, SUCCESS);
            }
            kernel(graph, &[], functions.set, 1, &mut arguments);
            launch(instantiate(graph).unwrap())
        } else {
            let mut pointers = [0, 1].map(|index| (&raw mut arguments[index]).cast());
            let (set, stream) = (functions.set, null_mut());
            let pointers = pointers.as_mut_ptr();
            let launched = cu!(cuLaunchKernel(
                set,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                pointers,
                null_mut()
            ));
            assert_eq!(launched, SUCCESS);
            cu!(cuCtxSynchronize())
        };
        assert_eq!(code, ILLEGAL_ADDRESS, "{in_graph} {handle}");
        assert_eq!(kinds(&device), [ReportKind::Fault]);
        let said = device.reports()[0].to_string();
        assert!(said.contains("condition"), "{said}");
    }
}

#[test]
fn threads_that_set_a_condition_at_the_same_time_are_at_fault() {
    let (device, _context) = fresh();
    let functions = functions();
    let graph = graph();
    let handle = condition(graph, 0);
    add(graph, &[], (handle, IF, 1));
    kernel(graph, &[], functions.race, 2, &mut [handle]);
    assert_eq!(launch(instantiate(graph).unwrap()), 719);
    let said = device.reports()[0].to_string();
    assert!(
        said.contains("set by lanes 0 and 1 at the same time"),
        "{said}"
    );
}

#[test]
fn a_loop_that_never_ends_uses_up_the_budget() {
    let (device, _context) = with(&Config::default().step_budget(100_000));
    let functions = functions();
    let graph = graph();
    let handle = condition(graph, 1);
    let (_, _, bodies) = add(graph, &[], (handle, WHILE, 1));
    kernel(bodies[0], &[], functions.set, 1, &mut [handle, 1]);
    assert_eq!(launch(instantiate(graph).unwrap()), 702);
    let said = device.reports()[0].to_string();
    assert!(
        said.contains("a loop of a graph has gone 101 rounds"),
        "{said}"
    );
}

#[test]
fn copies_and_fills_of_an_instantiated_graph_are_changed() {
    let (_device, _context) = fresh();
    let (graph, x, y) = (graph(), memory(&[7, 8]), memory(&[0; 4]));
    let handle = condition(graph, 1);
    let (_, _, bodies) = add(graph, &[], (handle, IF, 1));
    let node = fill(bodies[0], y, 5);
    let mut copy = sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: x,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: 8,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: y + 4,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: 8,
        dstHeight: 0,
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
    };
    let mut copies = null_mut();
    let added = cu!(cuGraphAddMemcpyNode(
        &raw mut copies,
        graph,
        null(),
        0,
        &raw const copy,
        current()
    ));
    assert_eq!(added, SUCCESS);
    let exec = instantiate(graph).unwrap();
    let mut params = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: y + 12,
        pitch: 0,
        value: 6,
        elementSize: 4,
        width: 1,
        height: 1,
    };
    let set = |node, params: &sys::CUDA_MEMSET_NODE_PARAMS| {
        cu!(cuGraphExecMemsetNodeSetParams(
            exec,
            node,
            params,
            current()
        ))
    };
    assert_eq!(set(node, &params), SUCCESS);
    assert_eq!(set(copies, &params), INVALID_VALUE);
    (params.width, params.height) = (1, 2);
    assert_eq!(set(node, &params), INVALID_VALUE);
    (params.width, params.height) = (0, 1);
    assert_eq!(set(node, &params), INVALID_VALUE);
    let set = |node, params: &sys::CUDA_MEMCPY3D| {
        cu!(cuGraphExecMemcpyNodeSetParams(
            exec,
            node,
            params,
            current()
        ))
    };
    copy.WidthInBytes = 8;
    assert_eq!(set(copies, &copy), SUCCESS);
    assert_eq!(set(node, &copy), INVALID_VALUE);
    copy.WidthInBytes = 0;
    assert_eq!(set(copies, &copy), INVALID_VALUE);
    assert_eq!(launch(exec), SUCCESS);
    assert_eq!(read(y), [0, 7, 8, 6]);
}
