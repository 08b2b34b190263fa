//! A kernel's graph of one node, which is launched in the place of the kernel.

use std::{cell::RefCell, fmt, ptr, sync::Arc};

use cudarc::driver::{
    CudaContext,
    sys::{CUgraph, CUgraphExec, CUgraphNode, CUstream},
};

use super::{
    enter,
    functions::{Functions, KernelNodeParams, functions},
    node_params, set_attributes,
};
use crate::{
    attributes::Attributes, driver::DriverCode, error::LoadError, launch::Dims, load::Loaded,
    params::with_block,
};

/// The graph of one kernel, built at its first launch, and anew when another launch asks for other
/// attributes.
pub(crate) struct Replayed {
    functions: &'static Functions,
    context: Arc<CudaContext>,
    state: RefCell<State>,
}

struct State {
    /// The node's, or those that it is to have.
    attributes: Attributes<'static>,
    graph: Option<OneNode>,
}

/// A graph, its node, what is launched, and what that does as it stands.
struct OneNode {
    raw: CUgraph,
    node: CUgraphNode,
    exec: CUgraphExec,
    dims: [u32; 7],
    params: Box<[u8]>,
}

// SAFETY: handles of the driver, whose functions may be called from any thread, though for one graph
// not from two at a time; whoever has this has all of it.
unsafe impl Send for OneNode {}

/// A call of the driver that failed.
pub(crate) type Failed = (&'static str, DriverCode);

impl Replayed {
    /// For a kernel that is loaded in the context.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Replayed, LoadError> {
        Ok(Replayed {
            functions: functions()?,
            context: context.clone(),
            state: RefCell::new(State {
                attributes: Attributes::NONE,
                graph: None,
            }),
        })
    }

    /// Says which attributes the next launches are to have.
    pub(crate) fn ask(&self, attributes: &Attributes<'static>) {
        let mut state = self.state.borrow_mut();
        // Mostly there are none.
        let any = state.attributes.any() || attributes.any();
        if any && state.attributes != *attributes {
            self.destroy(state.graph.take());
            state.attributes = *attributes;
        }
    }

    /// Whether there is a graph for these, so that the next launch has none to build.
    pub(crate) fn is_built(&self) -> bool {
        self.state.borrow().graph.is_some()
    }

    /// Enqueues the kernel: with the parameters and the shape that the node has, or else by giving it
    /// these.
    ///
    /// # Safety
    ///
    /// It must always be the same kernel, loaded in the context. The arguments must be what it takes,
    /// its arrays acquired for the stream, and the stream of the context and alive; if its handle is
    /// a default stream's, or the graph must be built, the context must be current.
    pub(crate) unsafe fn enqueue(
        &self,
        kernel: &Loaded,
        dims: Dims,
        stream: CUstream,
        params: &mut [u8],
    ) -> Result<(), Failed> {
        let state = &mut *self.state.borrow_mut();
        let (functions, attributes) = (self.functions, &state.attributes);
        let exec = match &mut state.graph {
            Some(graph) => {
                let numbers = dims.numbers();
                if graph.dims != numbers || *graph.params != *params {
                    let set = |node: &KernelNodeParams| {
                        let call = functions.exec_kernel_node_set_params;
                        // SAFETY: the node is one of the graph that `exec` was made from, and launches
                        // this kernel; the arguments have been checked, and are copied by the driver.
                        unsafe { call(graph.exec, graph.node, node) }
                    };
                    let set = described(kernel, dims, attributes, params, set).result();
                    if let Err(code) = set {
                        // Of no launch: the driver does not tell what it made of the node.
                        graph.dims = [0; 7];
                        return Err(("cuGraphExecKernelNodeSetParams", code));
                    }
                    graph.dims = numbers;
                    graph.params.copy_from_slice(params);
                }
                graph.exec
            }
            None => {
                // SAFETY: passed on to the caller.
                let graph = unsafe { self.build(kernel, dims, attributes, params) }?;
                state.graph.insert(graph).exec
            }
        };
        // SAFETY: the graph is this one's, and borrowed; the caller vouches for the stream.
        unsafe { (functions.launch)(exec, stream) }
            .result()
            .map_err(|code| ("cuGraphLaunch", code))
    }

    /// # Safety
    ///
    /// The kernel's context must be current, and its arguments be what it takes.
    #[cold]
    unsafe fn build(
        &self,
        kernel: &Loaded,
        dims: Dims,
        attributes: &Attributes<'static>,
        params: &mut [u8],
    ) -> Result<OneNode, Failed> {
        let functions = self.functions;
        let mut graph = OneNode {
            raw: ptr::null_mut(),
            node: ptr::null_mut(),
            exec: ptr::null_mut(),
            dims: dims.numbers(),
            params: (*params).into(),
        };
        // SAFETY: `raw` takes the answer.
        unsafe { (functions.create)(&raw mut graph.raw, 0) }
            .result()
            .map_err(|code| ("cuGraphCreate", code))?;
        let (raw, none) = (graph.raw, ptr::null());
        let added = &raw mut graph.node;
        let add = |params: &KernelNodeParams| {
            // SAFETY: `added` takes the answer; the graph was made above; the arguments have been
            // checked, and are copied by the driver.
            unsafe { (functions.add_kernel_node)(added, raw, none, 0, params) }
        };
        let has_node = described(kernel, dims, attributes, params, add)
            .result()
            .map_err(|code| ("cuGraphAddKernelNode", code));
        let built = has_node.and_then(|()| {
            // SAFETY: the node was added just now.
            unsafe { set_attributes(functions, graph.node, attributes) }
                .map_err(|code| ("cuGraphKernelNodeSetAttribute", code))?;
            let flags = attributes.instantiation_flags();
            // SAFETY: `exec` takes the answer.
            unsafe { (functions.instantiate)(&raw mut graph.exec, graph.raw, flags) }
                .result()
                .map_err(|code| ("cuGraphInstantiateWithFlags", code))
        });
        match built {
            Ok(()) => Ok(graph),
            Err(failed) => {
                self.destroy(Some(graph));
                Err(failed)
            }
        }
    }

    fn destroy(&self, graph: Option<OneNode>) {
        let Some(graph) = graph else { return };
        let Ok(_current) = enter(&self.context) else {
            return;
        };
        // A failure leaks them.
        if !graph.exec.is_null() {
            // One that runs is destroyed after it, by the driver.
            // SAFETY: it was instantiated, and nobody else has it.
            let _ = unsafe { (self.functions.exec_destroy)(graph.exec) };
        }
        // SAFETY: it was created, and nobody else has it.
        let _ = unsafe { (self.functions.destroy)(graph.raw) };
    }
}

/// Describes the node of a kernel to a call of the driver.
fn described(
    kernel: &Loaded,
    dims: Dims,
    attributes: &Attributes<'static>,
    params: &mut [u8],
    call: impl FnOnce(&KernelNodeParams) -> DriverCode,
) -> DriverCode {
    let grid = kernel.needs.grid_of_driver(dims.grid.into());
    let packed = attributes.take_packed(kernel);
    with_block(kernel, packed, params, |params, extra| {
        call(&node_params(kernel, grid, dims, params, extra))
    })
}

impl Drop for Replayed {
    fn drop(&mut self) {
        let graph = self.state.get_mut().graph.take();
        self.destroy(graph);
    }
}

impl fmt::Debug for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let built = self
            .state
            .try_borrow()
            .is_ok_and(|state| state.graph.is_some());
        f.debug_struct("Replayed")
            .field("built", &built)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use cudarc::driver::sys;

    use crate::{Buffer, cover, device, kernel, launch::Dims};

    #[kernel(ptx = "../kernels/vector.ptx", crate = crate)]
    unsafe extern "C" {
        #[requires(y.len() >= n)]
        safe fn fill(y: &mut [f32], v: f32, n: i32);
    }

    #[test]
    fn a_priority_is_that_of_the_launch() {
        let context = device(0).unwrap();
        let stream = context.default_stream();
        let mut y = Buffer::<f32>::zeroed(&stream, 8).unwrap();
        let mut replay = fill::load(&context).unwrap().replay().unwrap();
        let plain = cover(8);
        for (launch, expected) in [(plain, 0), (plain.priority(0), 8), (plain, 0)] {
            let (y, v) = (&mut y, 1.0);
            replay.launch(&stream, launch, fill { y, v, n: 8 }).unwrap();
            let state = replay.replayed().state.borrow();
            let exec = state.graph.as_ref().unwrap().exec;
            let mut flags = u64::MAX;
            // SAFETY: the graph is alive; `flags` takes the answer.
            unsafe { sys::cuGraphExecGetFlags(exec, &raw mut flags) }
                .result()
                .unwrap();
            assert_eq!(flags, expected);
            drop(state);
        }
    }

    #[test]
    fn a_node_that_was_refused_is_set_again() {
        let context = device(0).unwrap();
        let stream = context.default_stream();
        let mut y = Buffer::<f32>::zeroed(&stream, 8).unwrap();
        let mut replay = fill::load(&context).unwrap().replay().unwrap();
        let (y, v) = (&mut y, 1.0);
        let arguments = fill { y, v, n: 8 };
        replay.launch(&stream, cover(8), arguments).unwrap();
        let replayed = replay.replayed();
        let set = || {
            let state = replayed.state.borrow();
            let graph = state.graph.as_ref().unwrap();
            (graph.dims, graph.params.clone())
        };
        let (before, mut params) = set();
        let (kernel, raw) = (replay.kernel().loaded(), stream.cu_stream());
        // More threads than a block has.
        for numbers in [[1, 1, 1, 4096, 1, 1, 0], before] {
            let dims = Dims::from_numbers(numbers);
            // SAFETY: the arguments are those of before, and one stream does all.
            let enqueued = unsafe { replayed.enqueue(kernel, dims, raw, &mut params) };
            assert_eq!(enqueued.is_ok(), numbers == before);
            let expected = if numbers == before { before } else { [0; 7] };
            assert_eq!(set().0, expected);
        }
    }
}
