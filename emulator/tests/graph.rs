//! Graphs as they are captured, and what a capture forbids.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use common::graph::{
    allocate, begin, count_up, data, end, function, kernel_params, memset_node, read, set,
};
use common::{INVALID_VALUE, SUCCESS, cu, fresh, kinds, with};
use cudarc::driver::{CudaStream, sys};
use gridcall_emulator::{Config, Order, ReportKind};
use sys::CUgraphInstantiate_flags as Flags;
use sys::CUstreamCaptureMode::{
    CU_STREAM_CAPTURE_MODE_GLOBAL as GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as THREAD_LOCAL,
};

fn status(stream: &CudaStream) -> u32 {
    stream.capture_status().unwrap() as u32
}

#[test]
fn what_is_captured_runs_at_each_launch_only() {
    for order in [Order::Lazy, Order::Eager, Order::Random(3)] {
        let (device, context) = with(&Config::default().order(order));
        let stream = context.new_stream().unwrap();
        let x = allocate(16);
        assert_eq!(set(x, 1, 16, &stream), SUCCESS);
        stream.begin_capture(THREAD_LOCAL).unwrap();
        assert_eq!(status(&stream), 1);
        assert_eq!(set(x, 2, 16, &stream), SUCCESS);
        let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
        assert_eq!(status(&stream), 0);
        stream.synchronize().unwrap();
        assert_eq!(read(x), 1);
        graph.upload().unwrap();
        graph.launch().unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(x), 2);
        assert_eq!(set(x, 3, 16, &stream), SUCCESS);
        graph.launch().unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(x), 2);
        assert_eq!(device.reports(), []);
    }
}

#[test]
fn a_captured_copy_reads_the_host_at_each_launch() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(1);
    let mut host = Box::new(1u8);
    let source = (&raw const *host).cast::<c_void>();
    assert_eq!(begin(&stream, THREAD_LOCAL), SUCCESS);
    assert_eq!(
        cu!(cuMemcpyHtoDAsync_v2(x, source, 1, stream.cu_stream())),
        SUCCESS
    );
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    for value in [5, 6] {
        *host = value;
        graph.launch().unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(x), value);
    }
}

#[test]
fn instantiation_checks_its_flags() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let both = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        | Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    stream.begin_capture(THREAD_LOCAL).unwrap();
    assert_eq!(
        stream.end_capture(both).err().unwrap().0,
        sys::CUresult::CUDA_ERROR_INVALID_VALUE
    );
    stream.begin_capture(THREAD_LOCAL).unwrap();
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    graph.launch().unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn other_streams_join_by_events() {
    let (device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let x = allocate(2);
    assert_eq!(begin(&a, GLOBAL), SUCCESS);
    let event = context.new_event(None).unwrap();
    event.record(&a).unwrap();
    b.wait(&event).unwrap();
    assert_eq!(status(&b), 1);
    assert_eq!(set(x, 1, 1, &a), SUCCESS);
    assert_eq!(set(x + 1, 2, 1, &b), SUCCESS);
    let back = context.new_event(None).unwrap();
    back.record(&b).unwrap();
    a.wait(&back).unwrap();
    let (code, graph) = end(&a);
    assert_eq!(code, SUCCESS);
    assert_eq!(status(&b), 0);
    let mut count = 0;
    assert_eq!(
        cu!(cuGraphGetNodes(graph, null_mut(), &raw mut count)),
        SUCCESS
    );
    assert_eq!(count, 2);
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        SUCCESS
    );
    assert_eq!(cu!(cuGraphLaunch(exec, a.cu_stream())), SUCCESS);
    a.synchronize().unwrap();
    assert_eq!((read(x), read(x + 1)), (1, 2));
    assert_eq!(cu!(cuGraphExecDestroy(exec)), SUCCESS);
    assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
    assert_eq!(device.reports(), []);
}

#[test]
fn branches_of_a_graph_are_unordered() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(4);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let params = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: x,
        pitch: 4,
        value: 1,
        elementSize: 1,
        width: 4,
        height: 1,
    };
    let mut nodes = [null_mut(); 2];
    for node in &mut nodes {
        let code = cu!(cuGraphAddMemsetNode(
            node,
            graph,
            null(),
            0,
            &raw const params,
            context.cu_ctx()
        ));
        assert_eq!(code, SUCCESS);
    }
    let launch = || {
        let mut exec = null_mut();
        assert_eq!(
            cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
            SUCCESS
        );
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
        assert_eq!(cu!(cuGraphExecDestroy(exec)), SUCCESS);
        device.take_reports()
    };
    let reports = launch();
    assert_eq!(reports[0].kind, ReportKind::Conflict);
    let code = cu!(cuGraphAddDependencies_v2(
        graph,
        &raw const nodes[0],
        &raw const nodes[1],
        null(),
        1
    ));
    assert_eq!(code, SUCCESS);
    assert_eq!(launch(), []);
    // The other way round as well is a cycle.
    let code = cu!(cuGraphAddDependencies_v2(
        graph,
        &raw const nodes[1],
        &raw const nodes[0],
        null(),
        1
    ));
    assert_eq!(code, SUCCESS);
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        INVALID_VALUE
    );
}

#[test]
fn the_stream_goes_on_behind_a_graph() {
    let (device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let x = allocate(1);
    assert_eq!(begin(&a, THREAD_LOCAL), SUCCESS);
    assert_eq!(set(x, 2, 1, &a), SUCCESS);
    let graph = a.end_capture(Flags(0)).unwrap().unwrap();
    assert_eq!(set(x, 1, 1, &a), SUCCESS);
    graph.launch().unwrap();
    b.join(&a).unwrap();
    assert_eq!(set(x, 3, 1, &b), SUCCESS);
    context.synchronize().unwrap();
    assert_eq!(read(x), 3);
    assert_eq!(device.reports(), []);
    graph.launch().unwrap();
    assert_eq!(set(x, 4, 1, &b), SUCCESS);
    context.synchronize().unwrap();
    assert_eq!(kinds(&device), [ReportKind::Conflict]);
}

#[test]
fn the_default_stream_cannot_be_captured() {
    let (_device, context) = fresh();
    assert_eq!(begin(&context.default_stream(), GLOBAL), 900);
    let stream = context.new_stream().unwrap();
    assert_eq!(begin(&stream, GLOBAL), SUCCESS);
    assert_eq!(begin(&stream, GLOBAL), 401);
    assert_eq!(end(&stream).0, SUCCESS);
    assert_eq!(end(&stream).0, 401);
}

#[test]
fn a_blocking_stream_that_captures_bars_the_default_stream() {
    let (_device, context) = fresh();
    let mut blocking = null_mut();
    assert_eq!(cu!(cuStreamCreate(&raw mut blocking, 0)), SUCCESS);
    let x = allocate(1);
    assert_eq!(cu!(cuStreamBeginCapture_v2(blocking, RELAXED)), SUCCESS);
    assert_eq!(set(x, 1, 1, &context.default_stream()), 906);
    let mut graph = null_mut();
    assert_eq!(cu!(cuStreamEndCapture(blocking, &raw mut graph)), 901);
    assert!(graph.is_null());
}

#[test]
fn waiting_for_an_event_of_outside_ends_a_capture() {
    let (_device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let outside = b.record_event(None).unwrap();
    assert_eq!(begin(&a, THREAD_LOCAL), SUCCESS);
    let code = cu!(cuStreamWaitEvent(a.cu_stream(), outside.cu_event(), 0));
    assert_eq!(code, 905);
    assert_eq!(status(&a), 2);
    assert_eq!(end(&a), (901, null_mut()));
    assert_eq!(status(&a), 0);
}

#[test]
fn a_captured_event_cannot_be_asked() {
    let (_device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let event = context.new_event(None).unwrap();
    assert_eq!(begin(&a, THREAD_LOCAL), SUCCESS);
    event.record(&a).unwrap();
    assert_eq!(cu!(cuEventQuery(event.cu_event())), 907);
    assert_eq!(end(&a).0, 901);
    // What it stood for is gone.
    assert_eq!(
        cu!(cuStreamWaitEvent(b.cu_stream(), event.cu_event(), 0)),
        907
    );
}

#[test]
fn two_captures_cannot_be_merged() {
    let (_device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    assert_eq!(begin(&a, RELAXED), SUCCESS);
    assert_eq!(begin(&b, RELAXED), SUCCESS);
    let event = a.record_event(None).unwrap();
    assert_eq!(
        cu!(cuStreamWaitEvent(b.cu_stream(), event.cu_event(), 0)),
        902
    );
    assert_eq!((end(&a).0, end(&b).0), (901, 901));
}

#[test]
fn a_capture_ends_where_it_began() {
    let (_device, context) = fresh();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let x = allocate(1);
    assert_eq!(begin(&a, RELAXED), SUCCESS);
    b.join(&a).unwrap();
    assert_eq!(end(&b).0, 903);
    assert_eq!(end(&a).0, 901);
    assert_eq!(begin(&a, RELAXED), SUCCESS);
    b.join(&a).unwrap();
    assert_eq!(set(x, 1, 1, &b), SUCCESS);
    assert_eq!(end(&a), (904, null_mut()));
}

#[test]
fn a_capture_of_a_thread_ends_on_it() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    for (mode, code) in [(THREAD_LOCAL, 908), (RELAXED, SUCCESS)] {
        assert_eq!(begin(&stream, mode), SUCCESS);
        let other = std::thread::scope(|scope| {
            let ended = scope.spawn(|| {
                context.bind_to_thread().unwrap();
                end(&stream).0
            });
            ended.join().unwrap()
        });
        assert_eq!(other, code);
        assert_eq!(end(&stream).0, if code == SUCCESS { 401 } else { SUCCESS });
    }
    assert_eq!(begin(&stream, GLOBAL), SUCCESS);
    assert_eq!(end(&stream).0, SUCCESS);
}

#[test]
fn captures_forbid_what_may_wait() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let mut pointer = 0;
    for (mode, code) in [(GLOBAL, 900), (THREAD_LOCAL, 900), (RELAXED, SUCCESS)] {
        assert_eq!(begin(&stream, mode), SUCCESS);
        assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 1)), code, "{mode:?}");
        assert_eq!(end(&stream).0, if code == SUCCESS { SUCCESS } else { 901 });
    }
    for (mode, code) in [(GLOBAL, 900), (THREAD_LOCAL, SUCCESS)] {
        assert_eq!(begin(&stream, mode), SUCCESS);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                context.bind_to_thread().unwrap();
                let mut pointer = 0;
                assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 1)), code, "{mode:?}");
            });
        });
        assert_eq!(end(&stream).0, if code == SUCCESS { SUCCESS } else { 901 });
    }
    assert_eq!(begin(&stream, GLOBAL), SUCCESS);
    let mut mode = RELAXED;
    assert_eq!(
        cu!(cuThreadExchangeStreamCaptureMode(&raw mut mode)),
        SUCCESS
    );
    assert_eq!(mode, GLOBAL);
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 1)), SUCCESS);
    assert_eq!(
        cu!(cuThreadExchangeStreamCaptureMode(&raw mut mode)),
        SUCCESS
    );
    assert_eq!(cu!(cuStreamSynchronize(stream.cu_stream())), 900);
    assert_eq!(end(&stream).0, 901);
}

#[test]
fn a_context_of_which_a_stream_is_captured_is_not_waited_for() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        assert_eq!(begin(&stream, mode), SUCCESS);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                context.bind_to_thread().unwrap();
                let mut mode = RELAXED;
                assert_eq!(
                    cu!(cuThreadExchangeStreamCaptureMode(&raw mut mode)),
                    SUCCESS
                );
                assert_eq!(cu!(cuCtxSynchronize()), 900);
            });
        });
        assert_eq!(end(&stream).0, 901, "{mode:?}");
    }
    assert_eq!(cu!(cuCtxSynchronize()), SUCCESS);
}

#[test]
fn textures_do_not_come_and_go_beside_a_capture() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let memory = allocate(4096);
    let linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
        devPtr: memory,
        format: sys::CUarray_format::CU_AD_FORMAT_FLOAT,
        numChannels: 1,
        sizeInBytes: 4096,
    };
    let resource = sys::CUDA_RESOURCE_DESC_st {
        resType: sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
        res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 { linear },
        flags: 0,
    };
    // SAFETY: numbers and enumerations, of which zeros are values.
    let description: sys::CUDA_TEXTURE_DESC = unsafe { std::mem::zeroed() };
    let create = || {
        let mut object = 0;
        let code = cu!(cuTexObjectCreate(
            &raw mut object,
            &raw const resource,
            &raw const description,
            null()
        ));
        (code, object)
    };
    let (code, object) = create();
    assert_eq!(code, SUCCESS);
    assert_eq!(begin(&stream, GLOBAL), SUCCESS);
    assert_eq!(create().0, 900);
    assert_eq!(end(&stream).0, 901);
    assert_eq!(begin(&stream, GLOBAL), SUCCESS);
    assert_eq!(cu!(cuTexObjectDestroy(object)), 900);
    assert_eq!(end(&stream).0, 901);
    assert_eq!(begin(&stream, RELAXED), SUCCESS);
    assert_eq!(create().0, SUCCESS);
    assert_eq!(cu!(cuTexObjectDestroy(object)), SUCCESS);
    assert_eq!(end(&stream).0, SUCCESS);
}

#[test]
fn the_state_of_a_capture_can_be_asked() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(1);
    assert_eq!(begin(&stream, RELAXED), SUCCESS);
    assert_eq!(set(x, 1, 1, &stream), SUCCESS);
    let mut state = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut id, mut graph, mut nodes, mut edges, mut count) = (0, null_mut(), null(), null(), 0);
    let code = cu!(cuStreamGetCaptureInfo_v3(
        stream.cu_stream(),
        &raw mut state,
        &raw mut id,
        &raw mut graph,
        &raw mut nodes,
        &raw mut edges,
        &raw mut count
    ));
    assert_eq!(code, SUCCESS);
    assert_eq!(state as u32, 1);
    assert_eq!(count, 1);
    assert!(id != 0 && !graph.is_null() && !nodes.is_null() && edges.is_null());
    // SAFETY: the driver says that one node lies there.
    let mut node = unsafe { *nodes };
    let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    assert_eq!(cu!(cuGraphNodeGetType(node, &raw mut kind)), SUCCESS);
    assert_eq!(kind, sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    let code = cu!(cuStreamUpdateCaptureDependencies_v2(
        stream.cu_stream(),
        &raw mut node,
        null(),
        0,
        1
    ));
    assert_eq!(code, SUCCESS);
    assert_eq!(end(&stream).0, SUCCESS);
}

#[test]
fn a_graph_keeps_user_objects_until_it_is_gone() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let ended = AtomicU32::new(0);
    let mut object = null_mut();
    let create = |object: &mut sys::CUuserObject, flags| {
        cu!(cuUserObjectCreate(
            object,
            data(&ended),
            Some(count_up),
            1,
            flags
        ))
    };
    assert_eq!(create(&mut object, 0), INVALID_VALUE);
    assert_eq!(create(&mut object, 1), SUCCESS);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    // The graph takes over our reference.
    assert_eq!(cu!(cuGraphRetainUserObject(graph, object, 1, 1)), SUCCESS);
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        SUCCESS
    );
    assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
    assert_eq!(cu!(cuGraphExecDestroy(exec)), SUCCESS);
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[test]
fn a_graph_launched_in_a_capture_becomes_part_of_it() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(1);
    stream.begin_capture(RELAXED).unwrap();
    assert_eq!(set(x, 1, 1, &stream), SUCCESS);
    let inner = stream.end_capture(Flags(0)).unwrap().unwrap();
    stream.begin_capture(RELAXED).unwrap();
    assert_eq!(set(x, 9, 1, &stream), SUCCESS);
    inner.launch().unwrap();
    let outer = stream.end_capture(Flags(0)).unwrap().unwrap();
    outer.launch().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(x), 1);
}

#[test]
fn a_captured_kernel_keeps_its_packed_parameters() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let store = function(c"store_at");
    let (mut x, mut y) = (allocate(4), allocate(4));
    for pointer in [x, y] {
        assert_eq!(cu!(cuMemsetD8_v2(pointer, 0, 4)), SUCCESS);
    }
    context.synchronize().unwrap();
    let mut size = 8usize;
    let mut packed = |pointer: &mut u64| {
        [
            std::ptr::without_provenance_mut(1),
            std::ptr::from_mut(pointer).cast::<c_void>(),
            std::ptr::without_provenance_mut(2),
            (&raw mut size).cast(),
            null_mut(),
        ]
    };
    assert_eq!(begin(&stream, RELAXED), SUCCESS);
    let code = cu!(cuLaunchKernel(
        store,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        stream.cu_stream(),
        null_mut(),
        packed(&mut x).as_mut_ptr()
    ));
    assert_eq!(code, SUCCESS);
    let (code, graph) = end(&stream);
    assert_eq!(code, SUCCESS);
    let (mut node, mut count) = (null_mut(), 1);
    assert_eq!(
        cu!(cuGraphGetNodes(graph, &raw mut node, &raw mut count)),
        SUCCESS
    );
    let mut params = kernel_params(null_mut(), null_mut(), null_mut());
    assert_eq!(
        cu!(cuGraphKernelNodeGetParams_v2(node, &raw mut params)),
        SUCCESS
    );
    assert_eq!(params.func, store);
    assert!(params.kernelParams.is_null() && !params.extra.is_null());
    // What was read can be set again.
    assert_eq!(
        cu!(cuGraphKernelNodeSetParams_v2(node, &raw const params)),
        SUCCESS
    );
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)),
        SUCCESS
    );
    let launch = || {
        assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
        stream.synchronize().unwrap();
    };
    launch();
    assert_eq!((read(x), read(y)), (7, 0));
    // Another address, packed, and then as an array.
    let mut extra = packed(&mut y);
    let params = kernel_params(store, null_mut(), extra.as_mut_ptr());
    let code = cu!(cuGraphExecKernelNodeSetParams_v2(
        exec,
        node,
        &raw const params
    ));
    assert_eq!(code, SUCCESS);
    launch();
    assert_eq!(read(y), 7);
    let mut array = [(&raw mut x).cast()];
    let params = kernel_params(store, array.as_mut_ptr(), null_mut());
    let code = cu!(cuGraphExecKernelNodeSetParams_v2(
        exec,
        node,
        &raw const params
    ));
    assert_eq!(code, SUCCESS);
    assert_eq!(cu!(cuMemsetD8_v2(x, 0, 4)), SUCCESS);
    context.synchronize().unwrap();
    launch();
    assert_eq!(read(x), 7);
    assert_eq!(device.reports(), []);
}

fn begin_to_graph(stream: &CudaStream, graph: sys::CUgraph, after: &[sys::CUgraphNode]) -> u32 {
    cu!(cuStreamBeginCaptureToGraph(
        stream.cu_stream(),
        graph,
        after.as_ptr(),
        null(),
        after.len(),
        THREAD_LOCAL
    ))
}

#[test]
fn a_capture_goes_on_with_a_graph_behind_its_nodes() {
    let (device, context) = fresh();
    let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let x = allocate(2);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let first = memset_node(&context, graph, &[], x, 1);
    assert_eq!(begin_to_graph(&stream, graph, &[first]), SUCCESS);
    // A graph is captured into by one stream at a time.
    assert_eq!(begin_to_graph(&other, graph, &[]), INVALID_VALUE);
    assert_eq!(set(x, 2, 1, &stream), SUCCESS);
    assert_eq!(end(&stream), (SUCCESS, graph));
    let mut count = 0;
    let code = cu!(cuGraphGetNodes(graph, null_mut(), &raw mut count));
    assert_eq!((code, count), (SUCCESS, 2));
    let mut exec = null_mut();
    let code = cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    assert_eq!(code, SUCCESS);
    assert_eq!(cu!(cuGraphLaunch(exec, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!(read(x), 2);
    assert_eq!(device.reports(), []);
}

#[test]
fn a_capture_into_a_graph_that_fails_leaves_the_graph_there() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let x = allocate(1);
    let mut graph = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let node = memset_node(&context, graph, &[], x, 1);
    let mut other = null_mut();
    assert_eq!(cu!(cuGraphCreate(&raw mut other, 0)), SUCCESS);
    assert_eq!(begin_to_graph(&stream, other, &[node]), INVALID_VALUE);
    assert_eq!(begin_to_graph(&stream, graph, &[node]), SUCCESS);
    assert!(stream.synchronize().is_err());
    let (code, ended) = end(&stream);
    assert_ne!(code, SUCCESS);
    assert!(ended.is_null());
    assert_eq!(status(&stream), 0);
    assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
}
