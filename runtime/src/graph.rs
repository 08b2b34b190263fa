//! [`Graph`]: launches, copies and fills that are built once and launched together, many times.

mod array;
mod capture;
mod checked;
mod child;
mod condition;
mod copy;
mod error;
mod exec;
mod functions;
mod one;
mod order;

use std::{
    cell::RefCell,
    ffi::c_void,
    fmt,
    marker::PhantomData,
    mem, ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cudarc::driver::{
    CudaContext,
    sys::{CUgraph, CUgraphNode},
};
use gridcall_view::{AsDeviceView, AsDeviceViewMut, StreamRef};

use self::{
    array::{Array, Own, Part, Read, Write, check, tracker},
    checked::Checked,
    condition::ConditionOf,
    copy::Moves,
    functions::{Functions, KernelNodeParams, functions},
    order::{Order, Uses},
};
use crate::{
    attributes::{AccessPolicyWindow, AccessProperty, Attributes},
    buffer::Buffer,
    call::{FOREIGN, attributes_of_node, check_node, has_attributes},
    current::Current,
    driver::DriverCode,
    error::{LaunchError, LoadErrorKind},
    kernel::{Arguments, Declared, Kernel, Safe, Unsafe},
    launch::{Dims, Launch},
    load::Loaded,
    params::with_block,
};

pub use self::{
    array::{GraphSlice, GraphSliceMut},
    capture::{Capture, CaptureSlice, CaptureSliceMut},
    child::ChildGraph,
    condition::{ConditionHandle, GraphCondition},
    error::{GraphError, GraphErrorKind},
    exec::{GraphBuffers, GraphExec},
};
pub(crate) use self::{
    capture::is_any_captured,
    one::{Failed, Replayed},
    order::Access,
};

/// Typed launches, copies and fills, to be [instantiated](Graph::instantiate) and then launched
/// together as often as one likes, for a small part of what the single launches cost the host.
///
/// ```no_run
/// use gridcall::{Buffer, Graph, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.new_stream()?;
/// let x = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
///
/// let mut graph = Graph::new(&ctx)?;
/// let x = graph.read(&x)?; // borrowed as long as the graph lives
/// let mut y = graph.own(Buffer::<f32>::zeroed(&stream, 3)?)?; // given back at the end
/// let first = graph.add(cover(3), saxpy { n: 3, a: 1.0, x: &x, y: &mut y })?;
/// graph.add(cover(3), saxpy { n: 3, a: 10.0, x: &x, y: &mut y })?; // runs after the first
///
/// let mut graph = graph.instantiate()?;
/// graph.launch(&stream)?;
/// assert_eq!(graph.slice(y.as_slice())?.to_vec()?, [11.0, 22.0, 33.0]);
/// // Other arguments for one of the nodes, checked as at a launch.
/// graph.update(first, cover(3), saxpy { n: 3, a: -9.0, x: &x, y: &mut y })?;
/// graph.launch(&stream)?;
/// assert_eq!(graph.slice(y.as_slice())?.to_vec()?, [12.0, 24.0, 36.0]);
/// let y: Buffer<f32> = graph.into_buffers().take(y)?;
/// # Ok(())
/// # }
/// ```
///
/// # Arrays
///
/// An array is given to the graph once: borrowed for [reading](Graph::read) or
/// [writing](Graph::write), or [owned](Graph::own). What comes back, a [`GraphSlice`] or
/// [`GraphSliceMut`], stands for it in any number of nodes, can be copied and sliced, and is refused
/// by every other launch and graph. Scalars are copied into the node.
///
/// Each launch of the graph counts as one use of each of its arrays, however many nodes use them:
/// the stream is made to wait for whoever used them last, and whoever uses or frees them next waits
/// for the graph, by the rules of the arrays' own types. While [`Buffer`]s are used on one stream,
/// there is nothing to do, and it is known without asking them.
///
/// # Order
///
/// Nodes run as if one after another, as they were added: a node waits for those before it that
/// write what it uses or use what it writes. Others, and parts of one array that do not overlap,
/// run beside each other; of an array in its dimensions, all from its first element in memory to its
/// last counts. Where kernels use memory that they were not given as an array (device pointers of
/// `unsafe` kernels), [`order`](Graph::order) or [`in_order`](Graph::in_order) adds what cannot be
/// seen.
///
/// Launches of one graph never overlap: each waits for the one before, on whatever streams they
/// are.
///
/// # Conditions
///
/// A kernel can decide what else of the graph runs, without the host: it sets a [`GraphCondition`] that
/// it takes as a parameter, and nodes made by [`if_`](Graph::if_), [`if_else`](Graph::if_else),
/// [`while_`](Graph::while_) and [`switch`](Graph::switch) run one of their bodies, or the same again.
/// PTX that calls `cudaGraphSetConditional` is loaded as any: nothing needs to be linked. `if_else` and
/// `switch` need a driver of CUDA 12.8.
///
/// Graphs with conditions run one after another, on whatever streams of a context they are launched: each
/// waits for the one that was launched before it. A driver of CUDA 13.0 lets kernels of such graphs fail
/// (`CUDA_ERROR_LAUNCH_FAILED`), and their context with them, where many run at the same time. It was also
/// seen to fail, and to crash, where other threads built and launched graphs without conditions meanwhile;
/// nothing here can prevent that: build and launch all graphs on one thread as long as such a driver runs one
/// with conditions.
///
/// # Graphs in graphs
///
/// A graph can be built by itself, as by a library, and then be [added](Graph::add_graph) to another as one
/// node.
///
/// # Attributes
///
/// A node runs as a [cooperative](Launch::cooperative) grid, in [clusters](Launch::cluster), with a
/// [priority](Launch::priority), a [window](Graph::access_policy_window) of the L2 cache and all else that
/// its launch or its kernel's declaration asks for. All is checked as at a launch, and kept: an
/// [update](GraphExec::update) has to ask for the same. A graph in which no node asks for a priority has that
/// of the stream on which it is launched; where one does, those that ask for none have the default, 0. What
/// is between two launches of a stream, programmatic stream serialization and events, is refused.
///
/// # Forgetting
///
/// Nothing here relies on a destructor. The arrays of a graph that is dropped or forgotten are in
/// use until its last launch is done, which is noted where the launch is made, before the borrow
/// can end; and a graph that is forgotten can be launched no more. A graph that is dropped while it
/// runs is destroyed by the driver after the launch. The host waits for neither.
pub struct Graph<'a> {
    inner: Inner<'a>,
    /// Whether nodes are put one after another whatever they use.
    in_order: bool,
    /// Whether a capture into it failed, or what builds a body.
    incomplete: bool,
}

/// What a graph is made of, and keeps when it is instantiated.
struct Inner<'a> {
    functions: &'static Functions,
    context: Arc<CudaContext>,
    raw: CUgraph,
    /// The graphs of the bodies of nodes, by their numbers in `order`; the first is `raw`.
    bodies: Vec<CUgraph>,
    conditions: Vec<ConditionOf>,
    /// Odd, and never another's.
    id: usize,
    /// What the arrays of the node were described for that was checked last.
    noted: RefCell<Vec<Access>>,
    nodes: Vec<NodeOf>,
    order: Order,
    arrays: Vec<Box<dyn Array + 'a>>,
}

/// A node, as the driver has it.
struct NodeOf {
    raw: CUgraphNode,
    /// If it launches one.
    kernel: Option<Arc<Loaded>>,
    /// If it copies or fills.
    moves: Option<Moves>,
    /// If it has any.
    attributes: Option<Box<Attributes<'static>>>,
    /// Whether it does anything: a launch that covers nothing does not.
    enabled: bool,
    /// Whether the user turned it off.
    off: bool,
}

// SAFETY: handles of the driver, whose functions may be called from any thread, by one at a time:
// every one that takes the graph has it borrowed exclusively. All else is `Send` itself.
unsafe impl Send for Inner<'_> {}

/// A node of a graph: the launch of a kernel whose declaration is `D`, or a copy, a fill or what
/// was captured, if that is `()`.
///
/// ```
/// use gridcall::{Node, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     #[requires(y.len() >= n)]
///     pub safe fn scale(y: &mut [f32], a: f32, n: i32);
/// }
///
/// struct Step { damp: Node<scale> }
/// # fn main() {}
/// ```
pub struct Node<D = ()> {
    graph: usize,
    index: usize,
    declared: PhantomData<fn() -> D>,
}

impl<'a> Graph<'a> {
    /// An empty graph for streams of this context.
    ///
    /// # Errors
    ///
    /// If the driver refuses, or is older than CUDA 12.3.
    pub fn new(context: &Arc<CudaContext>) -> Result<Graph<'a>, GraphError> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let functions = functions()?;
        let _current = enter(context)?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` takes the answer; the flags must be 0.
        unsafe { (functions.create)(&raw mut raw, 0) }
            .result()
            .map_err(|code| failed("cuGraphCreate", code))?;
        let id = NEXT.fetch_add(2, Ordering::Relaxed);
        Ok(Graph {
            inner: Inner {
                functions,
                context: context.clone(),
                raw,
                bodies: vec![raw],
                conditions: Vec::new(),
                id,
                noted: RefCell::default(),
                nodes: Vec::new(),
                order: Order::default(),
                arrays: Vec::new(),
            },
            in_order: false,
            incomplete: false,
        })
    }

    /// Gives the graph an array to read: `&x`, or a view of one by value.
    ///
    /// # Errors
    ///
    /// If the array is not contiguous or in another context.
    pub fn read<T, V>(&mut self, array: V) -> Result<GraphSlice<T>, GraphError>
    where
        V: AsDeviceView<T> + Send + 'a,
        T: 'a,
    {
        let cure = array.make_contiguous();
        let array = Box::new(Read(array, PhantomData));
        self.keep(array, false, cure).map(GraphSlice::of)
    }

    /// Gives the graph an array to write, and to read: `&mut y`, a view of one by value, or an array
    /// that is dropped with the graph.
    ///
    /// # Errors
    ///
    /// If the array is not contiguous, in another context, or lent for reading only.
    pub fn write<T, V>(&mut self, array: V) -> Result<GraphSliceMut<T>, GraphError>
    where
        V: AsDeviceViewMut<T> + Send + 'a,
        T: 'a,
    {
        let cure = array.make_contiguous_mut();
        let array = Box::new(Write(array, PhantomData));
        self.keep(array, true, cure).map(GraphSliceMut::of)
    }

    /// Gives the graph a buffer to read and write, which can be [looked at](GraphExec::slice) between
    /// launches and [taken back](GraphExec::into_buffers) at the end.
    ///
    /// # Errors
    ///
    /// If the buffer is in another context.
    pub fn own<T: Send + 'static>(
        &mut self,
        buffer: Buffer<T>,
    ) -> Result<GraphSliceMut<T>, GraphError> {
        self.keep(Box::new(Own(buffer)), true, "")
            .map(GraphSliceMut::of)
    }

    /// An [`AccessPolicyWindow`] of an array of the graph, or a part of one, for launches that are its nodes.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use gridcall::{AccessProperty, Buffer, Graph, cover};
    /// # let ctx = gridcall::device(0)?;
    /// # let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let y = graph.own(Buffer::<f32>::zeroed(&stream, 1000)?)?;
    /// let window = graph.access_policy_window(y, AccessProperty::Persisting)?;
    /// let launch = cover(1000).access_policy_window(window);
    /// # let _ = launch;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the array is not one of the graph.
    pub fn access_policy_window<T>(
        &self,
        array: impl Into<GraphSlice<T>>,
        hit: AccessProperty,
    ) -> Result<AccessPolicyWindow, GraphError> {
        let slice = array.into();
        self.inner.is_own(slice.part())?;
        let Access { start, end, .. } = slice.part().access::<T>(false);
        // That of another device is refused where it is given to the graph.
        let device = i32::try_from(self.inner.context.ordinal()).ok();
        Ok(AccessPolicyWindow::of(start, end - start, device, hit))
    }

    /// Adds a launch of a safe kernel.
    ///
    /// The kernel is loaded if it is not. A launch that covers nothing is a node that does nothing,
    /// until it is updated.
    ///
    /// # Errors
    ///
    /// As at a launch; and if an array is not one of the graph.
    pub fn add<'e, A>(
        &mut self,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<Node<A::Declared>, GraphError>
    where
        A: Arguments<Declared: Declared<Safety = Safe>>,
    {
        // SAFETY: every caller of a safe kernel is safe, as its declaration vouches.
        unsafe { self.add_unsafe(launch, arguments) }
    }

    /// Adds a launch of any kernel.
    ///
    /// # Safety
    ///
    /// What the kernel's declaration asks of its callers must hold at every launch of the graph, and of one
    /// that it is [added](Graph::add_graph) to. If it uses memory that it is not given as an array, its node
    /// must be [ordered](Graph::order) with others that do, and that memory must live as long as the graph
    /// can run.
    ///
    /// # Errors
    ///
    /// As [`add`](Graph::add).
    pub unsafe fn add_unsafe<'e, A: Arguments>(
        &mut self,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<Node<A::Declared>, GraphError> {
        let kernel = self.inner.find::<A>()?;
        self.add_loaded(kernel, launch.into(), arguments)
    }

    /// Lets one node run after another that was added before it, whatever they use.
    ///
    /// # Errors
    ///
    /// If one of the nodes is of another graph or in another body, both are of one that was
    /// [added](Graph::add_graph), `after` was added first, or the driver refuses.
    pub fn order<B, A>(&mut self, before: Node<B>, after: Node<A>) -> Result<(), GraphError> {
        let inner = &mut self.inner;
        inner.is_own_node(before)?;
        inner.is_own_node(after)?;
        let (before, after) = (before.index, after.index);
        if before >= after {
            return Err(GraphErrorKind::Backwards { before, after }.into());
        }
        let body = inner.order.body_of(before);
        if inner.order.body_of(after) != body {
            return Err(GraphErrorKind::Bodies { before, after }.into());
        }
        if inner.order.is_added(before) {
            return Err(GraphErrorKind::OrderedBefore { before, after }.into());
        }
        if !inner.order.put_after(after, before) {
            return Ok(());
        }
        let raw = inner.bodies[body];
        let _one = inner.one_at_a_time();
        let (from, to) = (inner.nodes[before].raw, inner.nodes[after].raw);
        // SAFETY: both are nodes of the graph, with no such edge yet, and no cycle: edges lead from
        // what was added earlier to what was added later.
        unsafe { (inner.functions.add_dependencies)(raw, &raw const from, &raw const to, 1) }
            .result()
            .map_err(|code| failed("cuGraphAddDependencies", code))
    }

    /// Whether, from now on, each node runs after all that were added before it and before all that
    /// are added after it, whatever they use.
    pub fn in_order(&mut self, yes: bool) {
        self.in_order = yes;
    }

    /// Makes the graph ready to be launched.
    ///
    /// # Errors
    ///
    /// If a capture into it or a body of it failed, a condition decides no node, or the driver refuses.
    pub fn instantiate(self) -> Result<GraphExec<'a>, GraphError> {
        self.is_complete()?;
        if self.inner.order.body() != 0 {
            return Err(GraphErrorKind::Incomplete.into());
        }
        self.inner.all_decide()?;
        GraphExec::new(self.inner)
    }

    fn is_complete(&self) -> Result<(), GraphError> {
        if self.incomplete {
            return Err(GraphErrorKind::Incomplete.into());
        }
        Ok(())
    }

    fn keep(
        &mut self,
        array: Box<dyn Array + 'a>,
        writes: bool,
        cure: &'static str,
    ) -> Result<Part, GraphError> {
        let inner = &mut self.inner;
        let index = inner.arrays.len();
        let viewed = array.view().and_then(|view| {
            check(&view, &inner.context, writes, cure)?;
            Ok(Part {
                graph: inner.id,
                array: index,
                pointer: view.pointer(),
                start: 0,
                len: view.len(),
            })
        });
        let part = viewed.map_err(|error| GraphErrorKind::Array { index, error })?;
        inner.arrays.push(array);
        Ok(part)
    }

    fn add_loaded<A: Arguments>(
        &mut self,
        kernel: Arc<Loaded>,
        launch: Launch<'_>,
        mut arguments: A,
    ) -> Result<Node<A::Declared>, GraphError> {
        let inner = &mut self.inner;
        let _current = enter(&inner.context)?;
        let attributes = attributes_of_node(&kernel, &launch)?;
        let examined = has_attributes::<A::Declared>(&kernel, &launch).then_some(&attributes);
        let (dims, mut params) = inner.check(&kernel, launch, examined, &mut arguments)?;
        let accesses = mem::take(inner.noted.get_mut());
        let shown = not_empty(&kernel, dims, &attributes);
        let packed = attributes.take_packed(&kernel);
        let node = self.add_node(&accesses, |inner, node, after| {
            let bytes = params.as_mut();
            let refused = |call, code| not_added(&kernel, dims, &attributes, call, code);
            with_block(&kernel, packed, bytes, |params, extra| {
                let grid = kernel.needs.grid_of_driver(shown.grid.into());
                let params = node_params(&kernel, grid, shown, params, extra);
                // SAFETY: `node` takes the answer; the graph and `after` are the driver's own; the
                // arguments have been checked, and are copied by the driver.
                unsafe {
                    (inner.functions.add_kernel_node)(
                        node,
                        inner.body(),
                        after.as_ptr(),
                        after.len(),
                        &raw const params,
                    )
                }
            })
            .result()
            .map_err(|code| refused("cuGraphAddKernelNode", code))?;
            // SAFETY: it holds the answer.
            let added = unsafe { node.read() };
            // SAFETY: the node was added just now.
            unsafe { set_attributes(inner.functions, added, &attributes) }
                .map_err(|code| refused("cuGraphKernelNodeSetAttribute", code))
        })?;
        let this = &mut self.inner.nodes[node.index];
        this.enabled = !dims.is_empty();
        this.kernel = Some(kernel);
        this.attributes = attributes.boxed();
        Ok(node.of_kernel())
    }

    /// Adds what `add` adds, given where to put the node and after which it comes.
    fn add_node(
        &mut self,
        accesses: &[Access],
        add: impl FnOnce(&Inner<'_>, *mut CUgraphNode, &[CUgraphNode]) -> Result<(), GraphError>,
    ) -> Result<Node, GraphError> {
        let uses = Uses {
            accesses: accesses.to_vec(),
            all: self.in_order,
        };
        self.add_with_uses(uses, add)
    }

    fn add_with_uses(
        &mut self,
        uses: Uses,
        add: impl FnOnce(&Inner<'_>, *mut CUgraphNode, &[CUgraphNode]) -> Result<(), GraphError>,
    ) -> Result<Node, GraphError> {
        self.is_complete()?;
        let inner = &mut self.inner;
        let _current = enter(&inner.context)?;
        let after = inner.order.before(&uses);
        let raw_after: Vec<_> = after.iter().map(|&index| inner.nodes[index].raw).collect();
        let mut raw = ptr::null_mut();
        let one = inner.one_at_a_time();
        add(inner, &raw mut raw, &raw_after)?;
        drop(one);
        Ok(inner.note_node(raw, after, uses))
    }
}

impl Inner<'_> {
    /// The kernel that these are arguments of, loaded in the graph's context.
    fn find<A: Arguments>(&self) -> Result<Arc<Loaded>, GraphError> {
        let cell = A::Declared::cell();
        cell.get(&self.context)
            .map_err(|error| LaunchError::of_load(cell.declaration().kernel, error).into())
    }

    /// Checks the arguments of a node, and notes what its arrays are described for.
    fn check<A: Arguments>(
        &self,
        kernel: &Loaded,
        launch: Launch<'_>,
        attributes: Option<&Attributes<'static>>,
        arguments: &mut A,
    ) -> Result<(Dims, A::Params), LaunchError> {
        self.noted.borrow_mut().clear();
        let _checked = Checked::begin(self.id);
        let stand_in = Inner::stand_in(self.id);
        check_node(kernel, stand_in, launch, attributes, &self.noted, arguments)
    }

    /// What arguments of nodes are compared with, as those of a launch are with its stream.
    fn stand_in(graph: usize) -> StreamRef<'static> {
        let nowhere = ptr::null_mut();
        let other = tracker(graph).cast_mut();
        // SAFETY: it is no stream, and used as none: nothing is acquired for it or enqueued on it.
        // It is compared with arrays, of which only the graph's own can be equal to it.
        unsafe { StreamRef::from_raw(other, nowhere, FOREIGN) }.tracked_by(other)
    }

    fn is_own(&self, part: &Part) -> Result<(), GraphError> {
        if part.graph == self.id {
            return Ok(());
        }
        Err(GraphErrorKind::OtherGraph { what: "the array" }.into())
    }

    fn is_own_node<D>(&self, node: Node<D>) -> Result<(), GraphError> {
        if node.graph == self.id {
            return Ok(());
        }
        Err(GraphErrorKind::OtherGraph { what: "the node" }.into())
    }

    /// # Safety
    ///
    /// `node` must be writable, `after` nodes of this graph.
    unsafe fn add_empty(
        &self,
        node: *mut CUgraphNode,
        after: &[CUgraphNode],
    ) -> Result<(), GraphError> {
        // SAFETY: by the caller.
        unsafe { (self.functions.add_empty_node)(node, self.body(), after.as_ptr(), after.len()) }
            .result()
            .map_err(|code| failed("cuGraphAddEmptyNode", code))
    }

    fn note_node(&mut self, raw: CUgraphNode, after: Vec<usize>, uses: Uses) -> Node {
        self.nodes.push(NodeOf {
            raw,
            kernel: None,
            moves: None,
            attributes: None,
            enabled: true,
            off: false,
        });
        Node {
            graph: self.id,
            index: self.order.add(after, uses),
            declared: PhantomData,
        }
    }
}

impl Drop for Inner<'_> {
    fn drop(&mut self) {
        let Ok(_current) = enter(&self.context) else {
            return;
        };
        let _one = self.one_at_a_time();
        // SAFETY: the graph is this one's, and nobody else has it. A failure leaks it.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

impl Node {
    fn of_kernel<D>(self) -> Node<D> {
        Node {
            graph: self.graph,
            index: self.index,
            declared: PhantomData,
        }
    }
}

impl<D: Declared> Kernel<D, Safe> {
    /// Adds a launch of the kernel to a graph, as [`Graph::add`] does.
    ///
    /// # Errors
    ///
    /// As [`Graph::add`]; and if the kernel was loaded in another context.
    pub fn add_to<'e, A: Arguments<Declared = D>>(
        &self,
        graph: &mut Graph<'_>,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<Node<D>, GraphError> {
        graph.is_of(self.context())?;
        graph.add_loaded(self.share(), launch.into(), arguments)
    }
}

impl<D: Declared> Kernel<D, Unsafe> {
    /// Adds a launch of the kernel to a graph, as [`Graph::add_unsafe`] does.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_unsafe`].
    ///
    /// # Errors
    ///
    /// As [`Graph::add`]; and if the kernel was loaded in another context.
    pub unsafe fn add_to<'e, A: Arguments<Declared = D>>(
        &self,
        graph: &mut Graph<'_>,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<Node<D>, GraphError> {
        graph.is_of(self.context())?;
        graph.add_loaded(self.share(), launch.into(), arguments)
    }
}

impl Graph<'_> {
    fn is_of(&self, context: &CudaContext) -> Result<(), GraphError> {
        let own = &self.inner.context;
        if own.cu_ctx() == context.cu_ctx() {
            return Ok(());
        }
        Err(GraphErrorKind::OtherContext {
            graph: own.ordinal(),
            stream: context.ordinal(),
        }
        .into())
    }
}

/// The shape of a node that is added: one that does nothing is one of a single block or cluster, and
/// disabled.
fn not_empty(kernel: &Loaded, dims: Dims, attributes: &Attributes<'static>) -> Dims {
    let grid = if dims.is_empty() {
        attributes.one_cluster(kernel)
    } else {
        dims.grid
    };
    Dims { grid, ..dims }
}

/// `grid` is counted as the driver does.
#[inline(always)]
fn node_params(
    kernel: &Loaded,
    grid: [u32; 3],
    dims: Dims,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> KernelNodeParams {
    KernelNodeParams {
        function: kernel.function,
        grid,
        block: dims.block.into(),
        shared_mem_bytes: dims.shared_mem_bytes,
        params,
        extra,
        kernel: ptr::null_mut(),
        context: ptr::null_mut(),
    }
}

/// Sets the attributes of a kernel's node, or takes the node away again.
///
/// # Safety
///
/// It must be a node of a graph of ours that nobody knows yet.
unsafe fn set_attributes(
    functions: &Functions,
    node: CUgraphNode,
    attributes: &Attributes<'static>,
) -> Result<(), DriverCode> {
    for attribute in attributes.to_sys().as_slice() {
        let set = functions.kernel_node_set_attribute;
        // SAFETY: by the caller; the value is of the attribute's type, and copied by the driver.
        let code = unsafe { set(node, attribute.id, &raw const attribute.value) };
        if let Err(code) = code.result() {
            // A failure leaves a node that nothing comes after, and the first error counts.
            // SAFETY: by the caller.
            let _ = unsafe { (functions.destroy_node)(node) };
            return Err(code);
        }
    }
    Ok(())
}

/// Makes the context current.
fn enter(context: &CudaContext) -> Result<Current, GraphError> {
    Current::enter(context).map_err(|source| {
        let ordinal = context.ordinal();
        crate::error::LoadError::from(LoadErrorKind::Context { ordinal, source }).into()
    })
}

#[cold]
fn failed(call: &'static str, code: DriverCode) -> GraphError {
    if code.breaks_context() {
        return GraphErrorKind::Broken(code).into();
    }
    GraphErrorKind::Driver { call, code }.into()
}

/// The driver's refusal of a launch, with what it may be about.
#[cold]
fn not_added(
    kernel: &Loaded,
    dims: Dims,
    attributes: &Attributes<'static>,
    call: &'static str,
    code: DriverCode,
) -> GraphError {
    use crate::error::LaunchErrorKind;
    let kind = if code.breaks_context() {
        LaunchErrorKind::Broken(code)
    } else {
        let attributes = Some(attributes).filter(|attributes| attributes.any());
        let explanation = kernel.explain(dims, attributes);
        LaunchErrorKind::Driver {
            call,
            code,
            explanation,
        }
    };
    LaunchError::new(kernel.declaration.kernel, kind).into()
}

impl<D> Clone for Node<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Node<D> {}

impl<D> fmt::Debug for Node<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.index).finish()
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.inner.nodes.len())
            .field("arrays", &self.inner.arrays.len())
            .field("device", &self.inner.context.ordinal())
            .finish_non_exhaustive()
    }
}
