//! Capturing, building, launching and updating graphs.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use common::{INVALID_VALUE, SUCCESS, cu, fresh, kinds, with};
use cudarc::driver::{CudaStream, sys};
use gridcall_emulator::{Config, Order, ReportKind};
use sys::CUgraphInstantiate_flags as Flags;
use sys::CUlaunchAttributeID as Id;
use sys::CUstreamCaptureMode::{
    CU_STREAM_CAPTURE_MODE_GLOBAL as GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as THREAD_LOCAL,
};

fn allocate(bytes: usize) -> u64 {
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, bytes)), SUCCESS);
    pointer
}

fn set(pointer: u64, value: u8, bytes: usize, stream: &CudaStream) -> u32 {
    cu!(cuMemsetD8Async(pointer, value, bytes, stream.cu_stream()))
}

fn read(pointer: u64) -> u8 {
    let mut value = 0u8;
    assert_eq!(
        cu!(cuMemcpyDtoH_v2((&raw mut value).cast(), pointer, 1)),
        SUCCESS
    );
    value
}

fn begin(stream: &CudaStream, mode: sys::CUstreamCaptureMode) -> u32 {
    cu!(cuStreamBeginCapture_v2(stream.cu_stream(), mode))
}

fn end(stream: &CudaStream) -> (u32, sys::CUgraph) {
    let mut graph = null_mut();
    let code = cu!(cuStreamEndCapture(stream.cu_stream(), &raw mut graph));
    (code, graph)
}

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

extern "C" fn count_up(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the graph.
    let counter = unsafe { &*data.cast::<AtomicU32>() };
    counter.fetch_add(1, Ordering::SeqCst);
}

fn data(counter: &AtomicU32) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
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

const FAULTS: &str = include_str!("ptx/faults.ptx");

fn function(name: &std::ffi::CStr) -> sys::CUfunction {
    function_of(FAULTS, name)
}

fn function_of(text: &str, name: &std::ffi::CStr) -> sys::CUfunction {
    let text = std::ffi::CString::new(text).unwrap();
    let (mut module, mut function) = (null_mut(), null_mut());
    assert_eq!(
        cu!(cuModuleLoadData(&raw mut module, text.as_ptr().cast())),
        SUCCESS
    );
    assert_eq!(
        cu!(cuModuleGetFunction(
            &raw mut function,
            module,
            name.as_ptr()
        )),
        SUCCESS
    );
    function
}

fn kernel_params(
    function: sys::CUfunction,
    array: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: array,
        extra,
        kern: null_mut(),
        ctx: null_mut(),
    }
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

fn instantiate(graph: sys::CUgraph) -> (u32, sys::CUgraphExec) {
    let mut exec = null_mut();
    let code = cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    (code, exec)
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

fn memset_node(
    context: &cudarc::driver::CudaContext,
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
    to: u64,
    value: u32,
) -> sys::CUgraphNode {
    let fill = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value,
        elementSize: 1,
        width: 1,
        height: 1,
    };
    let mut node = null_mut();
    let code = cu!(cuGraphAddMemsetNode(
        &raw mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &raw const fill,
        context.cu_ctx()
    ));
    assert_eq!(code, SUCCESS);
    node
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
