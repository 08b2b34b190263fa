//! The driver's functions for graphs, resolved once. Bindings have several of them in versions
//! that differ by the toolkit; a driver of CUDA 12.3 has all of these.

use std::{
    ffi::{c_int, c_uint, c_void},
    sync::OnceLock,
};

use cudarc::driver::sys::{
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUfunction, CUgraph, CUgraphExec,
    CUgraphNode, CUstream,
};

use super::condition::{ConditionHandle, ConditionalNodeParams};
use crate::{
    attributes::SysValue,
    driver::{DriverCode, driver},
    error::{LoadError, LoadErrorKind},
};

/// By their names in the driver's header, without the prefix.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) create: unsafe extern "C" fn(*mut CUgraph, c_uint) -> DriverCode,
    pub(super) destroy: unsafe extern "C" fn(CUgraph) -> DriverCode,
    pub(super) add_kernel_node: AddNode<KernelNodeParams>,
    pub(super) kernel_node_set_attribute:
        unsafe extern "C" fn(CUgraphNode, c_uint, *const SysValue) -> DriverCode,
    pub(super) destroy_node: unsafe extern "C" fn(CUgraphNode) -> DriverCode,
    pub(super) add_memcpy_node: AddNodeIn<CUDA_MEMCPY3D>,
    pub(super) add_memset_node: AddNodeIn<CUDA_MEMSET_NODE_PARAMS>,
    pub(super) add_empty_node:
        unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> DriverCode,
    pub(super) add_child_graph_node: unsafe extern "C" fn(
        *mut CUgraphNode,
        CUgraph,
        *const CUgraphNode,
        usize,
        CUgraph,
    ) -> DriverCode,
    pub(super) child_graph_node_get_graph:
        unsafe extern "C" fn(CUgraphNode, *mut CUgraph) -> DriverCode,
    pub(super) get_nodes: unsafe extern "C" fn(CUgraph, *mut CUgraphNode, *mut usize) -> DriverCode,
    pub(super) node_get_type: unsafe extern "C" fn(CUgraphNode, *mut c_uint) -> DriverCode,
    pub(super) add_dependencies:
        unsafe extern "C" fn(CUgraph, *const CUgraphNode, *const CUgraphNode, usize) -> DriverCode,
    pub(super) conditional_handle_create: unsafe extern "C" fn(
        *mut ConditionHandle,
        CUgraph,
        CUcontext,
        c_uint,
        c_uint,
    ) -> DriverCode,
    pub(super) add_node: unsafe extern "C" fn(
        *mut CUgraphNode,
        CUgraph,
        *const CUgraphNode,
        *const c_void,
        usize,
        *mut ConditionalNodeParams,
    ) -> DriverCode,
    pub(super) instantiate: unsafe extern "C" fn(*mut CUgraphExec, CUgraph, u64) -> DriverCode,
    pub(super) exec_destroy: unsafe extern "C" fn(CUgraphExec) -> DriverCode,
    pub(super) upload: unsafe extern "C" fn(CUgraphExec, CUstream) -> DriverCode,
    pub(super) launch: unsafe extern "C" fn(CUgraphExec, CUstream) -> DriverCode,
    pub(super) exec_kernel_node_set_params:
        unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const KernelNodeParams) -> DriverCode,
    pub(super) exec_memcpy_node_set_params: unsafe extern "C" fn(
        CUgraphExec,
        CUgraphNode,
        *const CUDA_MEMCPY3D,
        CUcontext,
    ) -> DriverCode,
    pub(super) exec_memset_node_set_params: unsafe extern "C" fn(
        CUgraphExec,
        CUgraphNode,
        *const CUDA_MEMSET_NODE_PARAMS,
        CUcontext,
    ) -> DriverCode,
    pub(super) node_set_enabled:
        unsafe extern "C" fn(CUgraphExec, CUgraphNode, c_uint) -> DriverCode,
    pub(super) begin_capture_to_graph: unsafe extern "C" fn(
        CUstream,
        CUgraph,
        *const CUgraphNode,
        *const c_void,
        usize,
        c_int,
    ) -> DriverCode,
    pub(super) get_capture_info: unsafe extern "C" fn(
        CUstream,
        *mut c_uint,
        *mut u64,
        *mut CUgraph,
        *mut *const CUgraphNode,
        *mut *const c_void,
        *mut usize,
    ) -> DriverCode,
    pub(super) end_capture: unsafe extern "C" fn(CUstream, *mut CUgraph) -> DriverCode,
}

type AddNode<P> = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    usize,
    *const P,
) -> DriverCode;

type AddNodeIn<P> = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    usize,
    *const P,
    CUcontext,
) -> DriverCode;

/// `CUDA_KERNEL_NODE_PARAMS` of the second version.
#[derive(Debug)]
#[repr(C)]
pub(super) struct KernelNodeParams {
    pub(super) function: CUfunction,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_mem_bytes: c_uint,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    /// A `CUkernel`, in place of the function.
    pub(super) kernel: *mut c_void,
    /// The context of that.
    pub(super) context: CUcontext,
}

/// The functions, resolved at the first call that succeeds.
pub(super) fn functions() -> Result<&'static Functions, LoadError> {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    match FUNCTIONS.get() {
        Some(functions) => Ok(functions),
        None => resolve().map(|functions| FUNCTIONS.get_or_init(|| functions)),
    }
}

fn resolve() -> Result<Functions, LoadError> {
    let driver = driver()?;
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: the type of the field it is assigned to is the function's type in cuda.h.
            let function = unsafe { driver.function($name.as_bytes()) };
            function.ok_or(LoadErrorKind::OldDriver { function: $name })?
        }};
    }
    Ok(Functions {
        create: function!("cuGraphCreate"),
        destroy: function!("cuGraphDestroy"),
        add_kernel_node: function!("cuGraphAddKernelNode_v2"),
        kernel_node_set_attribute: function!("cuGraphKernelNodeSetAttribute"),
        destroy_node: function!("cuGraphDestroyNode"),
        add_memcpy_node: function!("cuGraphAddMemcpyNode"),
        add_memset_node: function!("cuGraphAddMemsetNode"),
        add_empty_node: function!("cuGraphAddEmptyNode"),
        add_child_graph_node: function!("cuGraphAddChildGraphNode"),
        child_graph_node_get_graph: function!("cuGraphChildGraphNodeGetGraph"),
        get_nodes: function!("cuGraphGetNodes"),
        node_get_type: function!("cuGraphNodeGetType"),
        add_dependencies: function!("cuGraphAddDependencies"),
        conditional_handle_create: function!("cuGraphConditionalHandleCreate"),
        add_node: function!("cuGraphAddNode_v2"),
        instantiate: function!("cuGraphInstantiateWithFlags"),
        exec_destroy: function!("cuGraphExecDestroy"),
        upload: function!("cuGraphUpload"),
        launch: function!("cuGraphLaunch"),
        exec_kernel_node_set_params: function!("cuGraphExecKernelNodeSetParams_v2"),
        exec_memcpy_node_set_params: function!("cuGraphExecMemcpyNodeSetParams"),
        exec_memset_node_set_params: function!("cuGraphExecMemsetNodeSetParams"),
        node_set_enabled: function!("cuGraphNodeSetEnabled"),
        begin_capture_to_graph: function!("cuStreamBeginCaptureToGraph"),
        get_capture_info: function!("cuStreamGetCaptureInfo_v3"),
        end_capture: function!("cuStreamEndCapture"),
    })
}
