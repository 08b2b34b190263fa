//! Nodes of graphs: adding them by hand, and reading and changing their parameters.

use super::Driver;
use super::border::{Host, HostCall, HostFn, In, Out};
use super::codes::{Answer, Code};
use super::copy::FillWork;
use super::entry::driver_api;
use super::graph::NodeWork;
use super::launch::{
    Arguments, CLUSTER_DIMENSION, COOPERATIVE, KernelWork, PREFERRED_CLUSTER_DIMENSION, Shape,
};
use super::preference::{self, Value};
use super::work::Work;

/// Parameters of a kernel node as a caller is shown them: the node owns what the pointers lead to.
#[derive(Debug)]
pub(crate) struct Shown {
    buffer: Vec<u8>,
    size: usize,
    extra: [usize; 5],
    array: Vec<Host>,
}

/// `CUDA_KERNEL_NODE_PARAMS`, of the second version and the third.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParams {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    array: In<Host>,
    extra: In<usize>,
    kernel: usize,
    context: usize,
}

/// `CUDA_MEMCPY3D`, one side of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopySide {
    pub(crate) x_bytes: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) kind: u32,
    pub(crate) host: Host,
    pub(crate) device: u64,
    pub(crate) array: usize,
    pub(crate) reserved: usize,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopyParams {
    pub(crate) from: CopySide,
    pub(crate) to: CopySide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FillParams {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostParams {
    function: HostFn,
    data: Host,
}

/// `CUgraphNodeParams`, as far as it is the same for all types.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NodeParams {
    kind: u32,
    reserved: [i32; 3],
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopyNodeParams {
    flags: i32,
    reserved: i32,
    context: usize,
    copy: CopyParams,
}

impl Driver {
    fn kernel_work(
        &mut self,
        params: &KernelParams,
        like: Option<&KernelWork>,
    ) -> Answer<KernelWork> {
        let function = if params.function == 0 {
            params.kernel
        } else {
            params.function
        };
        let cooperative = like.is_some_and(|kernel| kernel.launch.cooperative);
        if cooperative && !params.extra.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let shape = Shape {
            grid: params.grid,
            block: params.block,
            shared: params.shared,
            cooperative,
            cluster: like.and_then(|kernel| kernel.cluster),
            preferred: like.and_then(|kernel| kernel.preferred),
            unfinished: like.is_none(),
        };
        let arguments = Arguments {
            array: params.array,
            extra: params.extra,
        };
        let mut kernel = self.prepare(function, shape, arguments)?;
        // Says now what the emulator cannot run.
        self.make_grid(&mut kernel)?;
        if let Some(token) = kernel.workspace.take() {
            self.memory.free(token);
        }
        if let Some(like) = like {
            kernel.preferences.clone_from(&like.preferences);
        }
        Ok(kernel)
    }

    fn fill_work(&mut self, params: &FillParams) -> Answer<FillWork> {
        let fill = FillWork {
            to: params.to,
            value: params.value,
            element: u64::from(params.element),
            width: params.width as u64,
            height: params.height as u64,
            pitch: params.pitch as u64,
        };
        let known = self.memory.find_range(fill.to, fill.extent()).is_some();
        if !matches!(params.element, 1 | 2 | 4) || fill.bytes() == 0 || !known {
            return Err(Code::INVALID_VALUE);
        }
        Ok(fill)
    }

    fn kernel_of_node(&self, node: usize) -> Answer<&KernelWork> {
        let graph = self.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        match &self.graphs[&graph].nodes[&node].work {
            NodeWork::Work(Work::Kernel(kernel)) => Ok(kernel),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn set_kernel_of_node(&mut self, node: usize, kernel: KernelWork) -> Answer {
        let graph = self.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        if let Some(node) = self
            .graphs
            .get_mut(&graph)
            .and_then(|graph| graph.nodes.get_mut(&node))
        {
            node.work = NodeWork::Work(Work::Kernel(Box::new(kernel)));
            node.shown = None;
        }
        Ok(())
    }

    fn set_attribute(&mut self, node: usize, id: u32, value: Value) -> Answer {
        let mut kernel = self.kernel_of_node(node)?.clone();
        match id {
            COOPERATIVE => kernel.launch.cooperative = value[0] != 0,
            CLUSTER_DIMENSION => {
                let [x, y, z, ..] = value;
                kernel.cluster = Some([x, y, z]);
            }
            PREFERRED_CLUSTER_DIMENSION => {
                self.has_preferred_clusters(&kernel)?;
                let [x, y, z, ..] = value;
                kernel.preferred = Some([x, y, z]);
            }
            id if preference::is_of_node(id) => {
                let config = self.config_of(kernel.function)?;
                if preference::check(config, id, &value, true).is_err() {
                    return Err(Code::INVALID_VALUE);
                }
                kernel.preferences.insert(id, value);
            }
            _ => return Err(Code::NOT_SUPPORTED),
        }
        self.check_node(&mut kernel, true)?;
        self.set_kernel_of_node(node, kernel)
    }

    /// A node of an older device has no such attribute, though a launch may (H200).
    fn has_preferred_clusters(&self, kernel: &KernelWork) -> Answer {
        if self.config_of(kernel.function)?.compute_capability.0 < 10 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn attribute(&self, node: usize, id: u32) -> Answer<Value> {
        let kernel = self.kernel_of_node(node)?;
        let mut value = [0; 16];
        match id {
            COOPERATIVE => value[0] = kernel.launch.cooperative.into(),
            CLUSTER_DIMENSION => {
                let cluster = kernel.cluster.unwrap_or(kernel.launch.cluster);
                value[..3].copy_from_slice(&cluster);
            }
            PREFERRED_CLUSTER_DIMENSION => {
                self.has_preferred_clusters(kernel)?;
                value[..3].copy_from_slice(&kernel.preferred.unwrap_or_default());
            }
            id if preference::is_of_node(id) => {
                value = kernel.preferences.get(&id).copied().unwrap_or(value);
            }
            _ => return Err(Code::NOT_SUPPORTED),
        }
        Ok(value)
    }

    /// Lays the parameters of a kernel node out where the caller may look at them.
    fn show(&mut self, node: usize) -> Answer<KernelParams> {
        let kernel = self.kernel_of_node(node)?.clone();
        let offsets: Vec<usize> = self
            .kernel(kernel.function)?
            .params
            .iter()
            .map(|param| param.offset as usize)
            .collect();
        let mut shown = Box::new(Shown {
            size: kernel.launch.params.len(),
            buffer: kernel.launch.params.clone(),
            extra: [0; 5],
            array: Vec::new(),
        });
        let buffer = shown.buffer.as_ptr().expose_provenance();
        let mut params = KernelParams {
            function: kernel.function,
            grid: self
                .kernel(kernel.function)?
                .grid_of_launch(kernel.launch.grid),
            block: kernel.launch.block,
            shared: kernel.launch.dynamic_shared,
            array: In::NULL,
            extra: In::NULL,
            kernel: 0,
            context: self.context_of_function(kernel.function)?,
        };
        if kernel.packed {
            let size = std::ptr::from_ref(&shown.size).expose_provenance();
            shown.extra = [1, buffer, 2, size, 0];
            params.extra = In::of(&shown.extra);
        } else if !offsets.is_empty() {
            for offset in offsets {
                shown
                    .array
                    .push(Host::from_number((buffer + offset) as u64)?);
            }
            params.array = In::of(&shown.array);
        }
        let graph = self.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        if let Some(node) = self
            .graphs
            .get_mut(&graph)
            .and_then(|graph| graph.nodes.get_mut(&node))
        {
            node.shown = Some(shown);
        }
        Ok(params)
    }

    fn add_work(
        &mut self,
        node: Out<usize>,
        graph: usize,
        deps: In<usize>,
        count: usize,
        work: Work,
    ) -> Answer {
        node.check()?;
        let deps = deps.array(count)?;
        let handle = self.add_node(graph, NodeWork::Work(work), deps)?;
        node.set(handle)
    }

    /// Adds a node of any type that is supported.
    fn add_any(
        &mut self,
        node: Out<usize>,
        graph: usize,
        deps: In<usize>,
        count: usize,
        params: Out<NodeParams>,
    ) -> Answer {
        const BODY: usize = size_of::<NodeParams>();
        const KERNEL: u32 = 0;
        const COPY: u32 = 1;
        const FILL: u32 = 2;
        const HOST: u32 = 3;
        const EMPTY: u32 = 5;
        const CONDITIONAL: u32 = 13;
        self.graph(graph)?;
        if params.get()?.kind == CONDITIONAL {
            let deps = deps.array(count)?;
            return self.add_conditional(node, graph, deps, params.behind(BODY));
        }
        let work = match params.get()?.kind {
            KERNEL => Work::Kernel(Box::new(
                self.kernel_work(&params.behind(BODY).get()?, None)?,
            )),
            COPY => {
                let params: CopyNodeParams = params.behind(BODY).get()?;
                let copy = self.copy_work(&params.copy)?.ok_or(Code::INVALID_VALUE)?;
                Work::Copy(Box::new(copy))
            }
            FILL => Work::Fill(self.fill_work(&params.behind(BODY).get()?)?),
            HOST => {
                let params: HostParams = params.behind(BODY).get()?;
                Work::Host(HostCall::function(params.function, params.data)?)
            }
            EMPTY => Work::Nothing,
            _ => return Err(Code::NOT_SUPPORTED),
        };
        self.add_work(node, graph, deps, count, work)
    }
}

driver_api! {
    fn cuGraphAddKernelNode_v2(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, params: In<KernelParams>) {
        call.graph(graph)?;
        let kernel = call.kernel_work(&params.get()?, None)?;
        call.add_work(node, graph, deps, count, Work::Kernel(Box::new(kernel)))
    }

    fn cuGraphAddMemcpyNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, params: In<CopyParams>, context: usize) {
        call.graph(graph)?;
        call.get_context(context)?;
        let copy = call.copy_work(&params.get()?)?.ok_or(Code::INVALID_VALUE)?;
        call.add_work(node, graph, deps, count, Work::Copy(Box::new(copy)))
    }

    fn cuGraphAddMemsetNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, params: In<FillParams>, context: usize) {
        call.graph(graph)?;
        call.get_context(context)?;
        let fill = call.fill_work(&params.get()?)?;
        call.add_work(node, graph, deps, count, Work::Fill(fill))
    }

    fn cuGraphAddHostNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, params: In<HostParams>) {
        call.graph(graph)?;
        let params = params.get()?;
        let host = HostCall::function(params.function, params.data)?;
        call.add_work(node, graph, deps, count, Work::Host(host))
    }

    fn cuGraphAddEmptyNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize) {
        call.add_work(node, graph, deps, count, Work::Nothing)
    }

    fn cuGraphAddEventRecordNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, event: usize) {
        call.event(event)?;
        call.add_work(node, graph, deps, count, Work::Record { event, serial: 0 })
    }

    fn cuGraphAddEventWaitNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, event: usize) {
        call.event(event)?;
        node.check()?;
        let deps = deps.array(count)?;
        let handle = call.add_node(graph, NodeWork::Wait(event), deps)?;
        node.set(handle)
    }

    fn cuGraphAddNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, params: Out<NodeParams>) {
        call.add_any(node, graph, deps, count, params)
    }

    fn cuGraphAddNode_v2(call, node: Out<usize>, graph: usize, deps: In<usize>, _edges: In<u64>, count: usize, params: Out<NodeParams>) {
        call.add_any(node, graph, deps, count, params)
    }

    fn cuGraphAddNode_v3(call, node: Out<usize>, graph: usize, deps: In<usize>, _edges: In<u64>, count: usize, params: Out<NodeParams>) {
        call.add_any(node, graph, deps, count, params)
    }

    fn cuGraphNodeGetType(call, node: usize, kind: Out<u32>) {
        let graph = call.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        let value = call.graphs[&graph].nodes[&node].work.kind();
        kind.set(value)
    }

    fn cuGraphNodeGetDependencies(call, node: usize, nodes: Out<usize>, count: Out<usize>) {
        let graph = call.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        let deps = call.graphs[&graph].nodes[&node].deps.clone();
        super::graph::write_nodes(&deps, nodes, count)
    }

    fn cuGraphKernelNodeGetParams_v2(call, node: usize, params: Out<KernelParams>) {
        params.check()?;
        let shown = call.show(node)?;
        params.set(shown)
    }

    fn cuGraphKernelNodeSetParams_v2(call, node: usize, params: In<KernelParams>) {
        let like = call.kernel_of_node(node)?.clone();
        let kernel = call.kernel_work(&params.get()?, Some(&like))?;
        call.set_kernel_of_node(node, kernel)
    }

    fn cuGraphKernelNodeSetAttribute(call, node: usize, id: u32, value: In<Value>) {
        call.set_attribute(node, id, value.get()?)
    }

    fn cuGraphKernelNodeGetAttribute(call, node: usize, id: u32, value: Out<Value>) {
        let answer = call.attribute(node, id)?;
        value.set(answer)
    }

    fn cuGraphDestroyNode(call, node: usize) {
        let graph = call.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        call.drop_node(graph, node)
    }

    fn cuGraphExecMemcpyNodeSetParams(call, exec: usize, node: usize, params: In<CopyParams>, context: usize) {
        call.get_context(context)?;
        let copy = call.copy_work(&params.get()?)?.ok_or(Code::INVALID_VALUE)?;
        match call.exec_work(exec, node)? {
            NodeWork::Work(Work::Copy(old)) if old.height * old.depth == 1 && copy.height * copy.depth == 1 => {
                **old = copy;
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuGraphExecMemsetNodeSetParams(call, exec: usize, node: usize, params: In<FillParams>, context: usize) {
        call.get_context(context)?;
        let fill = call.fill_work(&params.get()?)?;
        match call.exec_work(exec, node)? {
            NodeWork::Work(Work::Fill(old)) if old.height == 1 && fill.height == 1 => {
                *old = fill;
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuGraphExecKernelNodeSetParams_v2(call, exec: usize, node: usize, params: In<KernelParams>) {
        let like = match call.exec_work(exec, node)? {
            NodeWork::Work(Work::Kernel(kernel)) => (**kernel).clone(),
            _ => return Err(Code::INVALID_VALUE),
        };
        let kernel = call.kernel_work(&params.get()?, Some(&like))?;
        *call.exec_work(exec, node)? = NodeWork::Work(Work::Kernel(Box::new(kernel)));
        Ok(())
    }
}
