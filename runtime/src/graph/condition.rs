//! Nodes that run bodies, as kernels of the graph decide.

use std::{
    collections::VecDeque,
    ffi::{c_int, c_uint},
    fmt, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cudarc::driver::{
    CudaContext, CudaStream,
    sys::{CUcontext, CUgraph, CUgraphExec},
};
use gridcall_view::{Place, View, ViewError};

use super::{
    Graph, Inner, Node,
    array::tracker,
    checked::condition_is_checked,
    child::{graph_of, nodes_of, type_of},
    enter,
    error::{GraphError, GraphErrorKind},
    exec::synchronise,
    failed,
    functions::{Functions, functions},
    order::{Access, Uses},
};
use crate::{
    arg::KernelArg,
    call::{Call, FOREIGN, Purpose},
    driver::driver,
    event::Event,
    layout::{ArgLayout, Class},
};

/// A number that kernels of a graph set, and that decides what one of its nodes runs:
/// `cudaGraphConditionalHandle` in CUDA C++. Made by [`Graph::condition`].
///
/// A kernel is declared with a parameter `GraphCondition`, and sets it by
/// `cudaGraphSetConditional(handle, value)`, which NVRTC knows with the option
/// `--relocatable-device-code=true`. It can be passed to nodes of its graph alone. Cheap to
/// copy, and means nothing elsewhere.
///
/// To the [order](Graph#order) of the nodes a condition is as an array of one element, which nodes that
/// take it write and the node that it decides reads. The author of a `safe` kernel vouches that no two of
/// its threads set one condition at the same time, and that it sets no other than those it is given.
///
/// ```no_run
/// use gridcall::{Buffer, Graph, GraphCondition, cover, kernel};
///
/// #[kernel(ptx = "../kernels/conditional.ptx")]
/// unsafe extern "C" {
///     /// condition ← value
///     #[block(1)]
///     safe fn set_condition(condition: GraphCondition, value: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.new_stream()?;
/// let mut graph = Graph::new(&ctx)?;
/// let y = graph.own(Buffer::<u32>::zeroed(&stream, 4)?)?;
/// let condition: GraphCondition = graph.condition(0)?;
/// let set = graph.add(cover(1), set_condition { condition, value: 1 })?;
/// graph.if_(condition, |body| body.fill(y, 7))?;
///
/// let mut graph = graph.instantiate()?;
/// graph.launch(&stream)?;
/// assert_eq!(graph.slice(y)?.to_vec()?, [7; 4]);
/// // Outside of its graph a condition is refused.
/// assert!(set_condition(&stream, cover(1), condition, 1).is_err());
/// # let _ = set;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct GraphCondition {
    graph: usize,
    /// Among the graph's conditions.
    index: usize,
    handle: ConditionHandle,
}

/// `CUgraphConditionalHandle`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct ConditionHandle(u64);

// SAFETY: the handle has 8 bytes, of which all are written.
unsafe impl KernelArg for ConditionHandle {
    const LAYOUT: ArgLayout = ArgLayout {
        size: 8,
        align: 8,
        class: Class::Integer,
        // What it leads to is the graph's, and a condition of another is refused.
        has_pointer: false,
        kind: "u64",
        name: "",
        fields: &[],
    };

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) {
        // SAFETY: the caller provides room for 8 bytes, at any alignment.
        unsafe { to.cast::<u64>().write_unaligned(self.0) }
    }
}

/// A condition, as its graph keeps it.
#[derive(Debug)]
pub(super) struct ConditionOf {
    /// The node that it decides.
    node: Option<usize>,
}

/// `CUgraphConditionalNodeType`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Kind {
    If = 0,
    While = 1,
    Switch = 2,
}

/// `CUgraphNodeParams` of a conditional node.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ConditionalNodeParams {
    /// `CU_GRAPH_NODE_TYPE_CONDITIONAL`.
    ty: c_int,
    reserved: [c_int; 3],
    handle: ConditionHandle,
    kind: c_uint,
    /// How many bodies there are.
    size: c_uint,
    /// Takes them, as an array of the driver's.
    bodies: *mut CUgraph,
    context: CUcontext,
    rest: [u64; 26],
}

/// No address on the device.
const FIRST: u64 = 1 << 63;

impl GraphCondition {
    fn access(self, writes: bool) -> Access {
        let start = FIRST + self.index as u64;
        Access {
            start,
            end: start + 1,
            writes,
        }
    }
}

impl<P: Purpose> Call<'_, P> {
    /// What a kernel gets for a condition of the graph that its node is checked for.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    #[inline]
    pub fn condition(
        &self,
        index: usize,
        condition: GraphCondition,
    ) -> Result<ConditionHandle, P::Stop> {
        if let Err(error) = condition_is_checked(condition.graph) {
            return Err(self.view_error(index, error).into());
        }
        let (context, device) = (ptr::null_mut(), FOREIGN);
        let place = Place::Context { context, device };
        let access = condition.access(true);
        let view = View::new(access.start, 1, place).tracked_by(tracker(condition.graph));
        // A launch that is made while the arguments of a node are looked at is none of that node.
        self.check_place(index, 1, &view)?;
        // One that a node takes twice is never as before: its accesses conflict.
        if self.has_noted(access.start) {
            let error = ViewError::other(
                "an earlier parameter is the same condition, which two threads could then set at the same time; make one for each",
            );
            return Err(self.view_error(index, error).into());
        }
        self.reaching::<u8>(access.start, 1, &view.exclusive(), true)?;
        Ok(condition.handle)
    }
}

impl<'a> Graph<'a> {
    /// A condition for one node of this graph, also one in a body, that is `default` whenever a launch of
    /// the graph begins.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn condition(&mut self, default: u32) -> Result<GraphCondition, GraphError> {
        /// `CU_GRAPH_COND_ASSIGN_DEFAULT`.
        const ASSIGN_DEFAULT: c_uint = 1;
        self.is_complete()?;
        let inner = &mut self.inner;
        let _current = enter(&inner.context)?;
        let (functions, context) = (inner.functions, inner.context.cu_ctx());
        let mut handle = ConditionHandle::default();
        let one = one_at_a_time();
        // SAFETY: `handle` takes the answer; the graph and the context are the driver's own.
        unsafe {
            (functions.conditional_handle_create)(
                &raw mut handle,
                inner.raw,
                context,
                default,
                ASSIGN_DEFAULT,
            )
        }
        .result()
        .map_err(|code| failed("cuGraphConditionalHandleCreate", code))?;
        drop(one);
        inner.conditions.push(ConditionOf { node: None });
        Ok(GraphCondition {
            graph: inner.id,
            index: inner.conditions.len() - 1,
            handle,
        })
    }

    /// Adds a node that runs what `then` adds, if the condition is not 0.
    ///
    /// `then` gets this graph, and adds nodes to it as always; they become the node's body. Nodes in the
    /// body run in the [order](Graph#order) in which they were added, and the body as a whole comes after
    /// and before what the nodes in it conflict with. Gives the node, and what `then` gives.
    ///
    /// # Errors
    ///
    /// If the condition is of another graph or decides a node already, `then` fails, or the driver
    /// refuses. After an error of `then` the graph is incomplete, and cannot be instantiated.
    pub fn if_<R>(
        &mut self,
        condition: GraphCondition,
        then: impl FnOnce(&mut Graph<'a>) -> Result<R, GraphError>,
    ) -> Result<(Node, R), GraphError> {
        let mut bodies = self.begin(condition, Kind::If, 1)?;
        let then = self.build(&mut bodies, then)?;
        Ok((self.close(&bodies)?, then))
    }

    /// Adds a node that runs what `then` adds, if the condition is not 0, and otherwise what `otherwise`
    /// adds; else as [`if_`](Graph::if_).
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let y = graph.own(Buffer::<u32>::zeroed(&stream, 4)?)?;
    /// let condition = graph.condition(0)?; // what no kernel sets stays
    /// graph.if_else(condition, |then| then.fill(y, 1), |otherwise| otherwise.fill(y, 2))?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`if_`](Graph::if_); and if the driver is older than CUDA 12.8.
    pub fn if_else<R, S>(
        &mut self,
        condition: GraphCondition,
        then: impl FnOnce(&mut Graph<'a>) -> Result<R, GraphError>,
        otherwise: impl FnOnce(&mut Graph<'a>) -> Result<S, GraphError>,
    ) -> Result<(Node, R, S), GraphError> {
        needs("`if_else`", 12080)?;
        let mut bodies = self.begin(condition, Kind::If, 2)?;
        let then = self.build(&mut bodies, then)?;
        let otherwise = self.build(&mut bodies, otherwise)?;
        Ok((self.close(&bodies)?, then, otherwise))
    }

    /// Adds a node that runs what `body` adds, again and again, as long as the condition is not 0; else
    /// as [`if_`](Graph::if_).
    ///
    /// The condition is looked at before each round. A kernel in the body sets it to 0 in the end: a loop
    /// that never ends, as where that kernel is turned off, occupies the device for good. A condition that decides a loop within the loop is
    /// its default only in the first round; whoever wants it to run again in the next sets it.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph, cover, kernel};
    ///
    /// #[kernel(ptx = "../kernels/conditional.ptx")]
    /// unsafe extern "C" {
    ///     /// Newton's step towards the square root of `a`; goes on as long as it changes much.
    ///     #[requires(x.len() >= 1, rounds.len() >= 1)]
    ///     #[block(1)]
    ///     safe fn newton(go_on: GraphCondition, a: f64, x: &mut [f64], rounds: &mut [u32]);
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let mut x = graph.own(Buffer::from_slice(&stream, &[2.0])?)?;
    /// let mut rounds = graph.own(Buffer::zeroed(&stream, 1)?)?;
    /// let go_on = graph.condition(1)?; // at least one round
    /// graph.while_(go_on, |body| {
    ///     body.add(cover(1), newton { go_on, a: 2.0, x: &mut x, rounds: &mut rounds })
    /// })?;
    ///
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?; // one launch, however many rounds
    /// assert_eq!(graph.slice(x)?.to_vec()?, [2.0_f64.sqrt()]);
    /// assert_eq!(graph.slice(rounds)?.to_vec()?, [6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`if_`](Graph::if_); and if no kernel in the body takes the condition.
    pub fn while_<R>(
        &mut self,
        condition: GraphCondition,
        body: impl FnOnce(&mut Graph<'a>) -> Result<R, GraphError>,
    ) -> Result<(Node, R), GraphError> {
        let mut bodies = self.begin(condition, Kind::While, 1)?;
        let built = self.build(&mut bodies, body)?;
        let node = self.close(&bodies)?;
        let inner = &self.inner;
        if !inner
            .order
            .accesses(node.index)
            .contains(&condition.access(true))
        {
            self.incomplete = true;
            let condition = condition.index;
            return Err(GraphErrorKind::Endless { condition }.into());
        }
        Ok((node, built))
    }

    /// Adds a node of `cases` bodies that runs the one whose number, from 0, the condition is, and
    /// nothing if there is none; else as [`if_`](Graph::if_).
    ///
    /// `body` is called for each of them, in order.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let y = graph.own(Buffer::<u32>::zeroed(&stream, 4)?)?;
    /// let condition = graph.condition(2)?;
    /// let (_, fills) = graph.switch(condition, 3, |body, case| body.fill(y, 10 + case))?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [12; 4]);
    /// // Nodes in bodies are updated as any.
    /// graph.update_fill(fills[2], y, 7)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [7; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`if_`](Graph::if_); if there are no cases, or the driver is older than CUDA 12.8.
    pub fn switch<R>(
        &mut self,
        condition: GraphCondition,
        cases: u32,
        mut body: impl FnMut(&mut Graph<'a>, u32) -> Result<R, GraphError>,
    ) -> Result<(Node, Vec<R>), GraphError> {
        needs("`switch`", 12080)?;
        if cases == 0 {
            return Err(GraphErrorKind::NoCases.into());
        }
        let mut bodies = self.begin(condition, Kind::Switch, cases)?;
        let built: Result<_, _> = (0..cases)
            .map(|case| self.build(&mut bodies, |graph| body(graph, case)))
            .collect();
        let built = built?;
        Ok((self.close(&bodies)?, built))
    }

    /// Adds a node whose bodies are empty yet, and which comes after none.
    fn begin(
        &mut self,
        condition: GraphCondition,
        kind: Kind,
        size: u32,
    ) -> Result<Bodies, GraphError> {
        self.is_complete()?;
        let uses = Uses {
            accesses: Vec::new(),
            all: self.in_order,
        };
        let inner = &mut self.inner;
        if condition.graph != inner.id {
            return Err(GraphErrorKind::OtherGraph {
                what: "the condition",
            }
            .into());
        }
        if let Some(node) = inner.conditions[condition.index].node {
            let condition = condition.index;
            return Err(GraphErrorKind::Decided { condition, node }.into());
        }
        let _current = enter(&inner.context)?;
        let mut params = ConditionalNodeParams {
            ty: 13,
            reserved: [0; 3],
            handle: condition.handle,
            kind: kind as c_uint,
            size,
            bodies: ptr::null_mut(),
            context: inner.context.cu_ctx(),
            rest: [0; 26],
        };
        let mut raw = ptr::null_mut();
        let one = inner.one_at_a_time();
        // SAFETY: `raw` takes the answer and `params` the bodies; the graph, the handle and the context
        // are the driver's own, and it comes after no node.
        unsafe {
            (inner.functions.add_node)(
                &raw mut raw,
                inner.body(),
                ptr::null(),
                ptr::null(),
                0,
                &raw mut params,
            )
        }
        .result()
        .map_err(|code| failed("cuGraphAddNode", code))?;
        drop(one);
        // SAFETY: the driver gave the address of so many graphs, which live as long as the node.
        let raw_bodies = unsafe { std::slice::from_raw_parts(params.bodies, size as usize) };
        let node = inner.note_node(raw, Vec::new(), uses);
        inner.conditions[condition.index].node = Some(node.index);
        Ok(Bodies {
            node,
            condition,
            left: raw_bodies.iter().copied().collect(),
        })
    }

    /// Lets `add` add nodes to the next body.
    fn build<R>(
        &mut self,
        bodies: &mut Bodies,
        add: impl FnOnce(&mut Graph<'a>) -> Result<R, GraphError>,
    ) -> Result<R, GraphError> {
        let inner = &mut self.inner;
        let condition = bodies.condition.access(false);
        let body = inner.order.begin_body(bodies.node.index, condition);
        inner.bodies.extend(bodies.left.pop_front());
        let building = Building {
            id: inner.id,
            body,
            in_order: self.in_order,
            graph: self,
        };
        let added = add(building.graph)?;
        building.end()?;
        Ok(added)
    }

    /// Puts a node whose bodies are built after those that it conflicts with.
    fn close(&mut self, bodies: &Bodies) -> Result<Node, GraphError> {
        let inner = &mut self.inner;
        let _current = enter(&inner.context)?;
        let node = bodies.node;
        let after = inner.order.close(node.index);
        let from: Vec<_> = after.iter().map(|&index| inner.nodes[index].raw).collect();
        let to = vec![inner.nodes[node.index].raw; from.len()];
        if !from.is_empty() {
            let _one = inner.one_at_a_time();
            // SAFETY: all are nodes of the graph, or of the body of it that both are in, with no edge
            // between them yet, and no cycle: edges lead to what was added later.
            unsafe {
                (inner.functions.add_dependencies)(
                    inner.body(),
                    from.as_ptr(),
                    to.as_ptr(),
                    from.len(),
                )
            }
            .result()
            .map_err(|code| {
                // It would run too early.
                self.incomplete = true;
                failed("cuGraphAddDependencies", code)
            })?;
        }
        Ok(node)
    }
}

impl Inner<'_> {
    /// The driver's graph that nodes are added to.
    pub(super) fn body(&self) -> CUgraph {
        self.bodies[self.order.body()]
    }

    /// Refuses nodes of the body, if there is one, that the driver runs in none.
    pub(super) fn check_body(&self) -> Result<(), GraphError> {
        if self.order.body() == 0 {
            return Ok(());
        }
        check_body(self.functions, self.body())
    }

    /// Held while the driver does something to the graph, if it has conditions.
    pub(super) fn one_at_a_time(&self) -> Option<MutexGuard<'static, OneAtATime>> {
        (!self.conditions.is_empty()).then(one_at_a_time)
    }

    /// Refuses conditions that decide nothing.
    pub(super) fn all_decide(&self) -> Result<(), GraphError> {
        let mut conditions = self.conditions.iter();
        match conditions.position(|condition| condition.node.is_none()) {
            Some(condition) => Err(GraphErrorKind::Undecided { condition }.into()),
            None => Ok(()),
        }
    }
}

/// Refuses what the driver runs in no body: it would say so when the graph is instantiated, and not what.
pub(super) fn check_body(functions: &Functions, body: CUgraph) -> Result<(), GraphError> {
    for node in nodes_of(functions, body)? {
        let what = match type_of(functions, node)? {
            // Kernels, copies, fills, empty nodes and those with bodies.
            0..=2 | 5 | 13 => continue,
            // Graphs.
            4 => {
                check_body(functions, graph_of(functions, node)?)?;
                continue;
            }
            3 => "a function of the host",
            6 => "the wait for an event",
            7 => "the record of an event",
            8 | 9 => "a semaphore",
            10 | 11 => "an allocation",
            _ => "what is no kernel",
        };
        return Err(GraphErrorKind::NotInBody { what }.into());
    }
    Ok(())
}

/// A node with bodies, of which some are to be built.
struct Bodies {
    node: Node,
    condition: GraphCondition,
    /// The first is the next.
    left: VecDeque<CUgraph>,
}

/// A graph while a body of it is built; incomplete if that does not come to its end.
struct Building<'g, 'a> {
    id: usize,
    body: usize,
    /// Whether what is outside is in order.
    in_order: bool,
    graph: &'g mut Graph<'a>,
}

impl Building<'_, '_> {
    /// Whether the graph is where it was: whoever builds has it exclusively, and can put another there.
    fn is_here(&self) -> bool {
        let inner = &self.graph.inner;
        inner.id == self.id && inner.order.body() == self.body
    }

    fn end(self) -> Result<(), GraphError> {
        if !self.is_here() {
            return Err(GraphErrorKind::OtherGraph {
                what: "what the body was built in",
            }
            .into());
        }
        self.graph.is_complete()?;
        let mut this = std::mem::ManuallyDrop::new(self);
        let in_order = this.in_order;
        let graph = &mut *this.graph;
        graph.inner.order.end_body();
        graph.in_order = in_order;
        Ok(())
    }
}

impl Drop for Building<'_, '_> {
    fn drop(&mut self) {
        // One that was put elsewhere stays within the body for good, which is as well.
        if self.graph.inner.id == self.id {
            self.graph.incomplete = true;
        }
    }
}

/// Graphs with conditions are made, instantiated, launched and destroyed one at a time, and in each
/// context run one after another: a driver of CUDA 13.0 lets their kernels fail
/// (`CUDA_ERROR_LAUNCH_FAILED`) where many run at the same time, and at times where several threads make
/// and launch them, also by the driver's functions alone.
#[derive(Debug)]
pub(super) struct OneAtATime {
    /// For each context that has such graphs, the end of the last one. Each graph holds its context's, which is
    /// let go of, and the context with it, when there are none and the last one has ended.
    last: Vec<Arc<Event>>,
}

fn one_at_a_time() -> MutexGuard<'static, OneAtATime> {
    static ONE: Mutex<OneAtATime> = Mutex::new(OneAtATime { last: Vec::new() });
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OneAtATime {
    /// Where the end of a graph of this context is noted.
    pub(super) fn last(&mut self, context: &Arc<CudaContext>) -> Result<Arc<Event>, GraphError> {
        let raw = context.cu_ctx();
        if let Some(last) = self.last.iter().find(|last| last.context() == raw) {
            return Ok(last.clone());
        }
        self.forget_ended();
        let event = Event::new(context).map_err(|error| failed("cuEventCreate", error.into()))?;
        let event = Arc::new(event);
        self.last.push(event.clone());
        Ok(event)
    }

    /// Forgets the contexts whose graphs are gone and have ended.
    pub(super) fn forget_ended(&mut self) {
        self.last.retain(|last| {
            let is_held = Arc::strong_count(last) > 1;
            // After an error nothing runs any more.
            is_held || last.is_recorded() && matches!(last.is_done(), Ok(false))
        });
    }
}

/// Launches a graph that has conditions after the last one that was, on whatever stream of the context.
///
/// # Safety
///
/// The graph must be of the stream's context, and its arrays acquired for the stream.
#[cold]
#[inline(never)]
pub(super) unsafe fn launch_after_others(
    exec: CUgraphExec,
    stream: &CudaStream,
) -> Result<(), GraphError> {
    let functions = functions()?;
    let _current = enter(stream.context())?;
    let mut one = one_at_a_time();
    let last = one.last(stream.context())?;
    let raw = stream.cu_stream();
    if last.is_recorded() {
        // SAFETY: the stream is of the event's context, which is current.
        unsafe { last.wait_on(raw) }.map_err(|error| failed("cuStreamWaitEvent", error.into()))?;
    }
    // SAFETY: by the caller.
    unsafe { (functions.launch)(exec, raw) }
        .result()
        .map_err(|code| failed("cuGraphLaunch", code))?;
    // SAFETY: as for the wait.
    if unsafe { last.record(raw) }.is_err() {
        // Others would not wait for this one; if waiting fails too, nothing runs any more in the context.
        synchronise(driver()?, stream)?;
    }
    Ok(())
}

/// Refuses a driver that does not know a kind of node.
fn needs(what: &'static str, version: u32) -> Result<(), GraphError> {
    match driver()?.version() {
        Ok(found) if found < version => {
            let needs = version;
            Err(GraphErrorKind::OldDriver { what, needs, found }.into())
        }
        Ok(_) => Ok(()),
        Err(code) => Err(failed("cuDriverGetVersion", code)),
    }
}

impl fmt::Debug for GraphCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GraphCondition").field(&self.index).finish()
    }
}
