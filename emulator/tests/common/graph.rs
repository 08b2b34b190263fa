//! Graphs and what is in them, made by bare calls.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::{CudaStream, sys};

use super::{SUCCESS, cu};

pub(crate) fn allocate(bytes: usize) -> u64 {
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, bytes)), SUCCESS);
    pointer
}

pub(crate) fn set(pointer: u64, value: u8, bytes: usize, stream: &CudaStream) -> u32 {
    cu!(cuMemsetD8Async(pointer, value, bytes, stream.cu_stream()))
}

pub(crate) fn read(pointer: u64) -> u8 {
    let mut value = 0u8;
    assert_eq!(
        cu!(cuMemcpyDtoH_v2((&raw mut value).cast(), pointer, 1)),
        SUCCESS
    );
    value
}

const FAULTS: &str = include_str!("../ptx/faults.ptx");

pub(crate) fn function(name: &std::ffi::CStr) -> sys::CUfunction {
    function_of(FAULTS, name)
}

pub(crate) fn function_of(text: &str, name: &std::ffi::CStr) -> sys::CUfunction {
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

pub(crate) fn kernel_params(
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

pub(crate) fn instantiate(graph: sys::CUgraph) -> (u32, sys::CUgraphExec) {
    let mut exec = null_mut();
    let code = cu!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    (code, exec)
}

pub(crate) fn memset_node(
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

/// What [`count_up`] takes.
pub(crate) fn data(counter: &AtomicU32) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
}

pub(crate) fn begin(stream: &CudaStream, mode: sys::CUstreamCaptureMode) -> u32 {
    cu!(cuStreamBeginCapture_v2(stream.cu_stream(), mode))
}

pub(crate) fn end(stream: &CudaStream) -> (u32, sys::CUgraph) {
    let mut graph = null_mut();
    let code = cu!(cuStreamEndCapture(stream.cu_stream(), &raw mut graph));
    (code, graph)
}

pub(crate) extern "C" fn count_up(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the graph.
    let counter = unsafe { &*data.cast::<AtomicU32>() };
    counter.fetch_add(1, Ordering::SeqCst);
}
