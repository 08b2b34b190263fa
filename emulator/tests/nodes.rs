//! Nodes of graphs: made by hand, changed, turned off, and taken out.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use common::graph::{
    allocate, begin, count_up, data, end, function, function_of, instantiate, kernel_params,
    memset_node, read, set,
};
use common::{INVALID_VALUE, SUCCESS, cu, fresh, kinds};
use cudarc::driver::sys;
use gridcall_emulator::ReportKind;
use sys::CUgraphInstantiate_flags as Flags;
use sys::CUlaunchAttributeID as Id;
use sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED;

#[test]
fn nodes_of_all_kinds_run_in_order() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let (x, y) = (allocate(8), allocate(8));
    let counter = AtomicU32::new(0);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let fill = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: x,
        pitch: 4,
        value: 7,
        elementSize: 1,
        width: 4,
        height: 2,
    };
    let mut first = null_mut();
    let code = cu!(cuGraphAddMemsetNode(
        &raw mut first,
        graph,
        null(),
        0,
        &raw const fill,
        context.cu_ctx()
    ));
    assert_eq!(code, SUCCESS);
    let copy = sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: x,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: 4,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: y,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: 2,
        dstHeight: 0,
        WidthInBytes: 2,
        Height: 2,
        Depth: 1,
    };
    let mut second = null_mut();
    let code = cu!(cuGraphAddMemcpyNode(
        &raw mut second,
        graph,
        &raw const first,
        1,
        &raw const copy,
        context.cu_ctx()
    ));
    assert_eq!(code, SUCCESS);
    let host = sys::CUDA_HOST_NODE_PARAMS {
        fn_: Some(count_up),
        userData: data(&counter),
    };
    let mut third = null_mut();
    let code = cu!(cuGraphAddHostNode(
        &raw mut third,
        graph,
        &raw const second,
        1,
        &raw const host
    ));
    assert_eq!(code, SUCCESS);
    let mut last = null_mut();
    let code = cu!(cuGraphAddEmptyNode(
        &raw mut last,
        graph,
        &raw const third,
        1
    ));
    assert_eq!(code, SUCCESS);
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        SUCCESS
    );
    for round in 1..=2 {
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
        assert_eq!(counter.load(Ordering::SeqCst), round);
    }
    assert_eq!([read(y), read(y + 3)], [7, 7]);
    let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    assert_eq!(cu!(cuGraphNodeGetType(third, &raw mut kind)), SUCCESS);
    assert_eq!(kind, sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST);
    assert_eq!(device.reports(), []);
}

#[test]
fn an_instantiated_graph_takes_over_another_of_its_shape() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(1);
    let capture = |values: &[u8]| {
        assert_eq!(begin(&stream, RELAXED), SUCCESS);
        for value in values {
            assert_eq!(set(x, *value, 1, &stream), SUCCESS);
        }
        end(&stream).1
    };
    let (one, other, longer) = (capture(&[1]), capture(&[2]), capture(&[1, 2]));
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, one, 0)),
        SUCCESS
    );
    let mut info = sys::CUgraphExecUpdateResultInfo {
        result: sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
        errorNode: null_mut(),
        errorFromNode: null_mut(),
    };
    assert_eq!(
        cu!(cuGraphExecUpdate_v2(exec, other, &raw mut info)),
        SUCCESS
    );
    assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!(read(x), 2);
    assert_eq!(cu!(cuGraphExecUpdate_v2(exec, longer, &raw mut info)), 910);
    assert_eq!(
        info.result,
        sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    );
}

#[test]
fn kernel_nodes_are_added_by_hand() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let (mut x, mut y, mut n) = (allocate(4), allocate(4), 1u32);
    let copy = function(c"copy_words");
    let store = function(c"store_at");
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let mut array: [*mut c_void; 3] = [
        (&raw mut x).cast(),
        (&raw mut y).cast(),
        (&raw mut n).cast(),
    ];
    let params = kernel_params(store, array.as_mut_ptr(), null_mut());
    let (mut first, mut second) = (null_mut(), null_mut());
    let code = cu!(cuGraphAddKernelNode_v2(
        &raw mut first,
        graph,
        null(),
        0,
        &raw const params
    ));
    assert_eq!(code, SUCCESS);
    let mut any = sys::CUgraphNodeParams {
        type_: sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        reserved0: [0; 3],
        __bindgen_anon_1: sys::CUgraphNodeParams_st__bindgen_ty_1 { reserved1: [0; 29] },
        reserved2: 0,
    };
    any.__bindgen_anon_1.kernel = sys::CUDA_KERNEL_NODE_PARAMS_v3 {
        func: copy,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: array.as_mut_ptr(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    let code = cu!(cuGraphAddNode_v2(
        &raw mut second,
        graph,
        &raw const first,
        null(),
        1,
        &raw mut any
    ));
    assert_eq!(code, SUCCESS);
    any.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    let code = cu!(cuGraphAddNode_v2(
        &raw mut second,
        graph,
        null(),
        null(),
        0,
        &raw mut any
    ));
    assert_eq!(code, 801);
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        SUCCESS
    );
    assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!(read(y), 7);
    assert_eq!(device.reports(), []);
}

const CLUSTERS: &str = include_str!("../../kernels/handwritten/explicit_cluster.ptx");

const COOPERATIVE: &str = include_str!("../../kernels/cooperative.ptx");

fn add_kernel(
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
    params: &sys::CUDA_KERNEL_NODE_PARAMS,
) -> sys::CUgraphNode {
    let mut node = null_mut();
    let code = cu!(cuGraphAddKernelNode_v2(
        &raw mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &raw const *params
    ));
    assert_eq!(code, SUCCESS);
    node
}

fn set_attribute(node: sys::CUgraphNode, id: Id, words: [u32; 3]) -> u32 {
    let [x, y, z] = words;
    let value = sys::CUlaunchAttributeValue {
        clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z },
    };
    cu!(cuGraphKernelNodeSetAttribute(node, id, &raw const value))
}

fn attribute(node: sys::CUgraphNode, id: Id) -> [u32; 3] {
    let mut value = sys::CUlaunchAttributeValue { pad: [1; 64] };
    let code = cu!(cuGraphKernelNodeGetAttribute(node, id, &raw mut value));
    assert_eq!(code, SUCCESS);
    // SAFETY: every value is set in full, and any bits are numbers.
    let dims = unsafe { value.clusterDim };
    [dims.x, dims.y, dims.z]
}

#[test]
fn a_node_runs_in_the_clusters_it_is_given() {
    const INVALID_CLUSTER_SIZE: u32 = 912;
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let cluster = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    let mut y = allocate(32);
    let mut array = [(&raw mut y).cast()];
    let any_cluster = function_of(CLUSTERS, c"any_cluster");
    let mut params = kernel_params(any_cluster, array.as_mut_ptr(), null_mut());
    params.gridDimX = 4;
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let node = add_kernel(graph, &[], &params);
    // The kernel needs a cluster, which it may be given as long as the graph is not instantiated.
    assert_eq!(instantiate(graph).0, INVALID_CLUSTER_SIZE);
    for impossible in [[3, 1, 1], [0, 1, 1], [4, 4, 1]] {
        assert_eq!(
            set_attribute(node, cluster, impossible),
            INVALID_CLUSTER_SIZE
        );
    }
    assert_eq!(device.reports().len(), 4);
    assert_eq!(set_attribute(node, cluster, [4, 1, 1]), SUCCESS);
    assert_eq!(attribute(node, cluster), [4, 1, 1]);
    let (code, exec) = instantiate(graph);
    assert_eq!(code, SUCCESS);
    let launch = |exec, first| {
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
        assert_eq!([read(y), read(y + 4)], [first, first]);
    };
    launch(exec, 4);
    // Other parameters leave it as it is, in the node and what was made of it.
    assert_eq!(set_attribute(node, cluster, [2, 1, 1]), SUCCESS);
    params.gridDimX = 8;
    let code = cu!(cuGraphExecKernelNodeSetParams_v2(
        exec,
        node,
        &raw const params
    ));
    assert_eq!(code, SUCCESS);
    launch(exec, 4);
    let code = cu!(cuGraphKernelNodeSetParams_v2(node, &raw const params));
    assert_eq!(code, SUCCESS);
    assert_eq!(attribute(node, cluster), [2, 1, 1]);
    let (code, other) = instantiate(graph);
    assert_eq!(code, SUCCESS);
    launch(other, 2);
    params.gridDimX = 6;
    let code = cu!(cuGraphExecKernelNodeSetParams_v2(
        exec,
        node,
        &raw const params
    ));
    assert_eq!(code, INVALID_CLUSTER_SIZE);
}

#[test]
fn a_cooperative_node_has_a_barrier_of_its_grid() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let cooperative = Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    let (mut a, mut b, mut n, mut rounds) = (allocate(64), allocate(64), 16, 2);
    assert_eq!(cu!(cuMemsetD8_v2(a, 0, 64)), SUCCESS);
    assert_eq!(cu!(cuMemsetD8_v2(a, 9, 4)), SUCCESS);
    context.synchronize().unwrap();
    let mut array: [*mut c_void; 4] = [
        (&raw mut a).cast(),
        (&raw mut b).cast(),
        (&raw mut n).cast::<i32>().cast(),
        (&raw mut rounds).cast::<i32>().cast(),
    ];
    let rotate = function_of(COOPERATIVE, c"rotate");
    let mut params = kernel_params(rotate, array.as_mut_ptr(), null_mut());
    (params.gridDimX, params.blockDimX) = (4, 4);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let node = add_kernel(graph, &[], &params);
    assert_eq!(attribute(node, cooperative)[0], 0);
    assert_eq!(set_attribute(node, cooperative, [1, 0, 0]), SUCCESS);
    assert_eq!(attribute(node, cooperative)[0], 1);
    let (code, exec) = instantiate(graph);
    assert_eq!(code, SUCCESS);
    for place in [14, 12] {
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
        assert_eq!(read(a + 4 * place), 9);
    }
    assert_eq!(device.reports(), []);
    // More blocks than run at a time.
    params.gridDimX = 132 * 64;
    let code = cu!(cuGraphExecKernelNodeSetParams_v2(
        exec,
        node,
        &raw const params
    ));
    assert_eq!(code, 720);
}

#[test]
fn a_node_keeps_attributes_that_only_say_how_fast() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let priority = Id::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let domain = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    let mut x = allocate(4);
    let mut array = [(&raw mut x).cast()];
    let params = kernel_params(function(c"store_at"), array.as_mut_ptr(), null_mut());
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let node = add_kernel(graph, &[], &params);
    assert_eq!(attribute(node, priority)[0], 0);
    assert_eq!(set_attribute(node, priority, [3, 0, 0]), SUCCESS);
    assert_eq!(set_attribute(node, domain, [1, 0, 0]), SUCCESS);
    let code = cu!(cuGraphKernelNodeSetParams_v2(node, &raw const params));
    assert_eq!(code, SUCCESS);
    assert_eq!(
        (attribute(node, priority)[0], attribute(node, domain)[0]),
        (3, 1)
    );
    // One that is between launches.
    let event = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    assert_eq!(set_attribute(node, event, [0; 3]), 801);
    let code = cu!(cuGraphKernelNodeSetAttribute(node, priority, null()));
    assert_eq!(code, INVALID_VALUE);

    // A captured launch hands them on.
    let mut attributes = [sys::CUlaunchAttribute {
        id: priority,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { priority: -2 },
    }];
    let config = sys::CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream.cu_stream(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: 1,
    };
    assert_eq!(begin(&stream, RELAXED), SUCCESS);
    let code = cu!(cuLaunchKernelEx(
        &raw const config,
        params.func,
        array.as_mut_ptr(),
        null_mut()
    ));
    assert_eq!(code, SUCCESS);
    let (code, captured) = end(&stream);
    assert_eq!(code, SUCCESS);
    let (mut node, mut count) = (null_mut(), 1);
    assert_eq!(
        cu!(cuGraphGetNodes(captured, &raw mut node, &raw mut count)),
        SUCCESS
    );
    assert_eq!(attribute(node, priority)[0].cast_signed(), -2);
    assert_eq!(device.reports(), []);
}

#[test]
fn a_node_is_taken_out_of_its_graph() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let (mut x, mut y) = (allocate(4), allocate(4));
    for pointer in [x, y] {
        assert_eq!(cu!(cuMemsetD8_v2(pointer, 0, 4)), SUCCESS);
    }
    context.synchronize().unwrap();
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let store = function(c"store_at");
    let mut array = [(&raw mut x).cast()];
    let params = kernel_params(store, array.as_mut_ptr(), null_mut());
    let first = add_kernel(graph, &[], &params);
    let mut array = [(&raw mut y).cast()];
    let params = kernel_params(store, array.as_mut_ptr(), null_mut());
    add_kernel(graph, &[first], &params);
    assert_eq!(cu!(cuGraphDestroyNode(first)), SUCCESS);
    assert_eq!(cu!(cuGraphDestroyNode(first)), INVALID_VALUE);
    let mut count = 0;
    assert_eq!(
        cu!(cuGraphGetRootNodes(graph, null_mut(), &raw mut count)),
        SUCCESS
    );
    assert_eq!(count, 1);
    let (code, exec) = instantiate(graph);
    assert_eq!(code, SUCCESS);
    assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!((read(x), read(y)), (0, 7));
}

#[test]
fn a_graph_allocates_and_frees_at_each_launch() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let y = allocate(4);
    let (mut x, mut foreign) = (0, 0);
    assert_eq!(
        cu!(cuMemAllocAsync(&raw mut foreign, 4, stream.cu_stream())),
        SUCCESS
    );
    assert_eq!(begin(&stream, RELAXED), SUCCESS);
    assert_eq!(
        cu!(cuMemAllocAsync(&raw mut x, 4, stream.cu_stream())),
        SUCCESS
    );
    assert_eq!(set(x, 6, 4, &stream), SUCCESS);
    assert_eq!(
        cu!(cuMemcpyDtoDAsync_v2(y, x, 4, stream.cu_stream())),
        SUCCESS
    );
    assert_eq!(
        cu!(cuMemFreeAsync(foreign, stream.cu_stream())),
        INVALID_VALUE
    );
    assert_eq!(cu!(cuMemFreeAsync(x, stream.cu_stream())), SUCCESS);
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    device.take_reports().clear();
    for _ in 0..2 {
        graph.launch().unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(y), 6);
    }
    assert_eq!(device.reports(), []);
    assert_eq!(device.leaks().len(), 2);
    // Behind the graph, its memory is gone.
    assert_eq!(set(x, 1, 4, &stream), SUCCESS);
    assert_eq!(cu!(cuStreamSynchronize(stream.cu_stream())), 700);
    assert_eq!(kinds(&device), [ReportKind::UseBeforeAllocation]);
}

#[test]
fn what_a_graph_leaves_allocated_is_freed_before_the_next_launch() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let capture = |flags| {
        let mut x = 0;
        assert_eq!(begin(&stream, RELAXED), SUCCESS);
        assert_eq!(
            cu!(cuMemAllocAsync(&raw mut x, 4, stream.cu_stream())),
            SUCCESS
        );
        assert_eq!(set(x, 6, 4, &stream), SUCCESS);
        (x, stream.end_capture(flags).unwrap().unwrap())
    };
    let (x, graph) = capture(Flags(0));
    graph.launch().unwrap();
    assert!(graph.launch().is_err());
    stream.synchronize().unwrap();
    assert_eq!(read(x), 6);
    assert_eq!(cu!(cuMemFreeAsync(x, stream.cu_stream())), SUCCESS);
    graph.launch().unwrap();
    let (_, automatic) = capture(Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    automatic.launch().unwrap();
    automatic.launch().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(device.leaks().len(), 2);
    drop(graph);
    // What is in use when the graph goes is the user's to free.
    assert_eq!(cu!(cuMemFreeAsync(x, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!(device.leaks().len(), 1);
    assert_eq!(device.reports(), []);
}

#[test]
fn a_node_is_turned_off_and_on() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(2);
    let (mut graph, mut exec, mut empty) = (null_mut(), null_mut(), null_mut());
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let first = memset_node(&context, graph, &[], x, 1);
    let second = memset_node(&context, graph, &[first], x, 2);
    let third = memset_node(&context, graph, &[second], x + 1, 3);
    let code = cu!(cuGraphAddEmptyNode(
        &raw mut empty,
        graph,
        &raw const third,
        1
    ));
    assert_eq!(code, SUCCESS);
    let code = cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    assert_eq!(code, SUCCESS);
    for (on, value) in [(0, 1), (1, 2), (0, 1)] {
        assert_eq!(cu!(cuGraphNodeSetEnabled(exec, second, on)), SUCCESS);
        let mut found = 9;
        let code = cu!(cuGraphNodeGetEnabled(exec, second, &raw mut found));
        assert_eq!((code, found), (SUCCESS, on));
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
        // What is behind a node that is off runs, in its place in the order.
        assert_eq!([read(x), read(x + 1)], [value, 3]);
    }
    assert_eq!(cu!(cuGraphNodeSetEnabled(exec, empty, 0)), INVALID_VALUE);
    assert_eq!(
        cu!(cuGraphNodeSetEnabled(exec, null_mut(), 0)),
        INVALID_VALUE
    );
    assert_eq!(device.reports(), []);
}
