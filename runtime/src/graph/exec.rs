//! A graph that can be launched and updated.

use std::{any::Any, cell::Cell, ffi::c_uint, fmt, mem, ptr, sync::Arc};

use cudarc::driver::{
    CudaStream,
    sys::{CUgraphExec, CUstream},
};
use gridcall_view::{Guard, StreamRef, ViewError};

use super::{
    Inner, Node,
    array::{Array, GraphSlice, GraphSliceMut, Part, State},
    checked::Checked,
    condition::launch_after_others,
    copy::Moves,
    enter,
    error::{GraphError, GraphErrorKind},
    failed, node_params, not_added,
};
use crate::{
    attributes::Attributes,
    awaiting::{After, after},
    buffer::{Buffer, BufferSlice, BufferSliceMut},
    call::{Stop, check_again, has_attributes},
    current::Current,
    driver::{Driver, DriverCode, driver},
    event::Event,
    kernel::{Arguments, Declared, Safe},
    launch::Launch,
    params::with_block,
};

/// A [`Graph`](super::Graph) that is ready to be launched, and keeps its arrays.
#[repr(C)]
pub struct GraphExec<'a> {
    enqueuing: Enqueuing,
    is_capturing: unsafe extern "C" fn(CUstream, *mut c_uint) -> DriverCode,
    /// The handle of the stream that all arrays are settled on; [`NOWHERE`] if they are not, or it is
    /// not known.
    settled_on: Cell<usize>,
    driver: &'static Driver,
    /// What a graph with conditions is launched after.
    after: Option<Arc<Event>>,
    /// Dropped after the graph is destroyed.
    pub(super) inner: Inner<'a>,
}

/// No stream's handle.
const NOWHERE: usize = usize::MAX;

/// The handle of the default stream that is another one on each thread.
const PER_THREAD: usize = 2;

// SAFETY: as for `Inner`; every function that takes `raw` has the graph borrowed exclusively.
unsafe impl Send for GraphExec<'_> {}

impl<'a> GraphExec<'a> {
    pub(super) fn new(inner: Inner<'a>) -> Result<GraphExec<'a>, GraphError> {
        let driver = driver()?;
        let _current = enter(&inner.context)?;
        let mut raw = ptr::null_mut();
        let mut one = inner.one_at_a_time();
        let after = match &mut one {
            Some(one) => Some(one.last(&inner.context)?),
            None => None,
        };
        let mut flags = 0;
        for node in &inner.nodes {
            let attributes = node.attributes.as_deref().unwrap_or(&Attributes::NONE);
            flags |= attributes.instantiation_flags();
        }
        // SAFETY: `raw` takes the answer; the graph is the driver's own.
        unsafe { (inner.functions.instantiate)(&raw mut raw, inner.raw, flags) }
            .result()
            .map_err(|code| failed("cuGraphInstantiateWithFlags", code))?;
        drop(one);
        let mut kernels = inner.nodes.iter().filter_map(|node| node.kernel.as_ref());
        let exec = GraphExec {
            enqueuing: Enqueuing {
                raw,
                launch: inner.functions.launch,
                conditional: !inner.conditions.is_empty(),
                synchronous: kernels.any(|kernel| kernel.synchronous),
            },
            is_capturing: driver.stream_is_capturing,
            settled_on: Cell::new(NOWHERE),
            driver,
            after,
            inner,
        };
        for node in exec.inner.nodes.iter().filter(|node| !node.enabled) {
            // SAFETY: it is a kernel's node of the graph that was instantiated.
            unsafe { (exec.inner.functions.node_set_enabled)(raw, node.raw, 0) }
                .result()
                .map_err(|code| failed("cuGraphNodeSetEnabled", code))?;
        }
        Ok(exec)
    }

    /// Launches the graph in the order of `stream`: after what the stream does now, after the last
    /// launch of this graph, and after what other streams do with its arrays now.
    ///
    /// # Errors
    ///
    /// If the stream is in another context or being captured, an array cannot be waited for, or the
    /// driver refuses; in these cases nothing was launched.
    #[inline]
    pub fn launch(&mut self, stream: &CudaStream) -> Result<(), GraphError> {
        let _current = self.check_stream(stream)?;
        // A view that said so says so as long as it lives, and one could live until now: since it
        // was asked, each array has been borrowed, and was neither acquired nor lent. An error that
        // cudarc stored meanwhile stays where it is: nothing here could have caused it.
        if self.settled_on.get() == stream.cu_stream().addr() {
            return self.enqueuing.launch(self.driver, stream);
        }
        self.launch_unsettled(stream)
    }

    /// Prepares the device for the next launch, in the order of `stream`, so that the launch itself
    /// takes less time. The first launch does so otherwise.
    ///
    /// # Errors
    ///
    /// If the stream is in another context or being captured, or the driver refuses.
    pub fn upload(&mut self, stream: &CudaStream) -> Result<(), GraphError> {
        check_earlier(stream)?;
        let _current = self.check_stream(stream)?;
        let _current = enter(&self.inner.context)?;
        let _one = self.inner.one_at_a_time();
        // SAFETY: the graph is this one's; the stream is borrowed and of its context.
        unsafe { (self.inner.functions.upload)(self.enqueuing.raw, stream.cu_stream()) }
            .result()
            .map_err(|code| failed("cuGraphUpload", code))
    }

    /// Gives a node other arguments and another shape, for launches from now on.
    ///
    /// The arrays may be others than before, of this graph, as long as no node that conflicts with
    /// them can run at the same time: the order of the nodes stays as it was built. So do the node's
    /// [attributes](super::Graph#attributes).
    ///
    /// # Errors
    ///
    /// As for [`Graph::add`](super::Graph::add); if the node is of another graph, has other
    /// attributes than the launch asks for, or would conflict with one that runs beside it. The node
    /// is then as it was.
    #[inline]
    pub fn update<'e, A>(
        &mut self,
        node: Node<A::Declared>,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<(), GraphError>
    where
        A: Arguments<Declared: Declared<Safety = Safe>>,
    {
        // SAFETY: every caller of a safe kernel is safe, as its declaration vouches.
        unsafe { self.update_unsafe(node, launch, arguments) }
    }

    /// Gives a node of any kernel other arguments and another shape.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_unsafe`](super::Graph::add_unsafe).
    ///
    /// # Errors
    ///
    /// As [`update`](GraphExec::update).
    #[inline]
    pub unsafe fn update_unsafe<'e, A: Arguments>(
        &mut self,
        node: Node<A::Declared>,
        launch: impl Into<Launch<'e>>,
        mut arguments: A,
    ) -> Result<(), GraphError> {
        let launch = launch.into();
        self.inner.is_own_node(node)?;
        if self.update_as_before(node.index, launch, &mut arguments)? {
            return Ok(());
        }
        // A copy, so that only this puts it into memory.
        let copy = launch;
        self.update_otherwise(node.index, &copy, arguments)
    }

    /// The update of a node of this graph that has no attributes and does something, to arrays that it
    /// uses already, in the same order. Says whether it was one, and the driver took it: not where
    /// the graph has conditions, for which there is a lock.
    #[inline(always)]
    fn update_as_before<A: Arguments>(
        &mut self,
        node: usize,
        launch: Launch<'_>,
        arguments: &mut A,
    ) -> Result<bool, GraphError> {
        let inner = &self.inner;
        let this = &inner.nodes[node];
        let Some(kernel) = &this.kernel else {
            return Ok(false);
        };
        let Some(before) = inner.order.accesses_apart(node) else {
            return Ok(false);
        };
        if !this.enabled
            || self.enqueuing.conditional
            || this.attributes.is_some()
            || has_attributes::<A::Declared>(kernel, &launch)
            || kernel.is_to_grant(launch.dynamic_shared_mem_bytes())
        {
            return Ok(false);
        }
        let checked = {
            let _checked = Checked::begin(inner.id);
            check_again(kernel, Inner::stand_in(inner.id), launch, before, arguments)
        };
        let (dims, mut params) = match checked {
            Ok((dims, params)) if !dims.is_empty() => (dims, params),
            Ok(_) | Err(Stop::Others) => return Ok(false),
            Err(Stop::Error(error)) => return Err(error.into()),
        };
        let code = with_block(kernel, kernel.packed, params.as_mut(), |params, extra| {
            // A kernel of which the driver counts clusters has attributes.
            let params = node_params(kernel, dims.grid.into(), dims, params, extra);
            let set_params = inner.functions.exec_kernel_node_set_params;
            // SAFETY: the node is one of the graph that `exec` was made from, and launches this kernel;
            // the arguments have been checked, and are copied by the driver.
            unsafe { set_params(self.enqueuing.raw, this.raw, &raw const params) }
        });
        Ok(code.result().is_ok())
    }

    /// Any other update of a node of this graph.
    #[cold]
    #[inline(never)]
    fn update_otherwise<A: Arguments>(
        &mut self,
        node: usize,
        launch: &Launch<'_>,
        mut arguments: A,
    ) -> Result<(), GraphError> {
        let inner = &mut self.inner;
        let this = &inner.nodes[node];
        let Some(kernel) = &this.kernel else {
            return Err(GraphErrorKind::OtherGraph { what: "the node" }.into());
        };
        let attributes = this.attributes.as_deref();
        let examined = attributes.is_some() || has_attributes::<A::Declared>(kernel, launch);
        let attributes = attributes.unwrap_or(&Attributes::NONE);
        let mut current = None;
        if examined || kernel.is_to_grant(launch.dynamic_shared_mem_bytes()) {
            current = Some(enter(&inner.context)?);
        }
        let to_examine = examined.then_some(attributes);
        let (dims, mut params) = inner.check(kernel, *launch, to_examine, &mut arguments)?;
        let accesses = inner.noted.get_mut();
        let others = accesses != inner.order.accesses(node);
        if others && let Some(other) = inner.order.beside(node, accesses) {
            return Err(GraphErrorKind::Unordered { node, other }.into());
        }
        let enabled = !dims.is_empty();
        if enabled {
            let (functions, exec, raw) = (inner.functions, self.enqueuing.raw, this.raw);
            let (packed, bytes) = (attributes.take_packed(kernel), params.as_mut());
            let mut set = || {
                let _one = inner.one_at_a_time();
                with_block(kernel, packed, bytes, |params, extra| {
                    let grid = kernel.needs.grid_of_driver(dims.grid.into());
                    let params = node_params(kernel, grid, dims, params, extra);
                    // SAFETY: the node is one of the graph that `exec` was made from, and launches
                    // this kernel; the arguments have been checked, and are copied by the driver.
                    unsafe { (functions.exec_kernel_node_set_params)(exec, raw, &raw const params) }
                })
                .result()
            };
            let mut done = set();
            if done.is_err() && current.is_none() {
                // Another context may have been current.
                current = Some(enter(&inner.context)?);
                done = set();
            }
            let call = "cuGraphExecKernelNodeSetParams";
            done.map_err(|code| not_added(kernel, dims, attributes, call, code))?;
        }
        let changes = enabled != inner.nodes[node].enabled;
        // A node that could not be turned off still does what it did, with what it used.
        if changes && !enabled {
            let _current = enter(&inner.context)?;
            inner.enable(self.enqueuing.raw, node, false)?;
        }
        if others {
            inner.order.set_accesses(node, inner.noted.get_mut());
        }
        if changes && enabled {
            let _current = enter(&inner.context)?;
            inner.enable(self.enqueuing.raw, node, true)?;
        }
        drop(current);
        Ok(())
    }

    /// Turns a node off or on again, for launches from now on. One that is off does nothing, keeps its
    /// place in the order, and can be updated.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let x = graph.own(Buffer::<u32>::zeroed(&stream, 4)?)?;
    /// let fill = graph.fill(x, 1)?;
    /// let mut graph = graph.instantiate()?;
    /// graph.set_enabled(fill, false)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(x)?.to_vec()?, [0; 4]);
    /// graph.set_enabled(fill, true)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(x)?.to_vec()?, [1; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the node is of another graph, is no launch of a kernel, copy or fill, or the driver refuses.
    pub fn set_enabled<D>(&mut self, node: Node<D>, on: bool) -> Result<(), GraphError> {
        let (inner, exec) = (&mut self.inner, self.enqueuing.raw);
        inner.is_own_node(node)?;
        let this = &inner.nodes[node.index];
        match this.moves {
            // To the driver it is a node that can neither be turned off nor on, and there is nothing to.
            Some(Moves::Nothing) => return Ok(()),
            None if this.kernel.is_none() => {
                return Err(GraphErrorKind::AlwaysOn { node: node.index }.into());
            }
            _ => {}
        }
        let enabled = this.enabled;
        let _current = enter(&inner.context)?;
        inner.set_enabled(exec, node.index, enabled, !on)
    }

    pub(super) fn raw(&self) -> CUgraphExec {
        self.enqueuing.raw
    }

    /// Elements of a buffer that the graph [owns](super::Graph::own), to be read between its
    /// launches: copied to the host, or passed to other launches.
    ///
    /// # Errors
    ///
    /// If the graph does not own it.
    pub fn slice<T: 'static>(
        &self,
        slice: impl Into<GraphSlice<T>>,
    ) -> Result<BufferSlice<'_, T>, GraphError> {
        let slice = slice.into();
        let part = *slice.part();
        self.inner.is_own(&part)?;
        self.settled_on.set(NOWHERE);
        let owned = self.inner.arrays[part.array].owned();
        let buffer = owned.and_then(|owned| owned.downcast_ref::<Buffer<T>>());
        let buffer = buffer.ok_or(GraphErrorKind::NotOwned)?;
        Ok(buffer.slice(part.start..part.start + part.len)?)
    }

    /// Elements of a buffer that the graph [owns](super::Graph::own), to be written between its
    /// launches.
    ///
    /// # Errors
    ///
    /// If the graph does not own it.
    pub fn slice_mut<T: 'static>(
        &mut self,
        slice: GraphSliceMut<T>,
    ) -> Result<BufferSliceMut<'_, T>, GraphError> {
        let part = *slice.part();
        self.inner.is_own(&part)?;
        self.settled_on.set(NOWHERE);
        let owned = self.inner.arrays[part.array].owned_mut();
        let buffer = owned.and_then(|owned| owned.downcast_mut::<Buffer<T>>());
        let buffer = buffer.ok_or(GraphErrorKind::NotOwned)?;
        Ok(buffer.slice_mut(part.start..part.start + part.len)?)
    }

    /// Ends the graph, and gives back the buffers that it [owns](super::Graph::own). The host does
    /// not wait for its last launch; whoever uses the buffers does.
    #[must_use]
    pub fn into_buffers(mut self) -> GraphBuffers {
        let arrays = mem::take(&mut self.inner.arrays);
        GraphBuffers {
            graph: self.inner.id,
            buffers: arrays.into_iter().map(Array::into_owned).collect(),
        }
    }

    /// Refuses a stream that the graph cannot be launched on. The context is current for as long as
    /// what is returned lives, where the stream's handle means another stream in each.
    #[inline]
    fn check_stream(&self, stream: &CudaStream) -> Result<Option<Current>, GraphError> {
        let (context, own) = (stream.context(), &self.inner.context);
        if !Arc::ptr_eq(context, own) && context.cu_ctx() != own.cu_ctx() {
            return Err(GraphErrorKind::OtherContext {
                graph: own.ordinal(),
                stream: context.ordinal(),
            }
            .into());
        }
        let handle = stream.cu_stream().addr();
        let mut current = None;
        if handle <= PER_THREAD && !self.is_current() {
            current = Some(enter(own)?);
        }
        // The legacy stream cannot be captured.
        if handle >= PER_THREAD && self.is_capturing(stream) != Ok(false) {
            let _current = enter(own)?;
            match self.is_capturing(stream) {
                Ok(false) => {}
                Ok(true) => return Err(GraphErrorKind::Capturing.into()),
                Err(code) => return Err(failed("cuStreamIsCapturing", code)),
            }
        }
        Ok(current)
    }

    /// Whether the graph's context is current.
    #[inline]
    fn is_current(&self) -> bool {
        let mut current = ptr::null_mut();
        // SAFETY: `current` takes the answer.
        let code = unsafe { (self.driver.ctx_get_current)(&raw mut current) };
        code.result().is_ok() && current == self.inner.context.cu_ctx()
    }

    #[inline]
    fn is_capturing(&self, stream: &CudaStream) -> Result<bool, DriverCode> {
        let mut capturing = 0;
        // SAFETY: the stream is borrowed; `capturing` takes the answer.
        unsafe { (self.is_capturing)(stream.cu_stream(), &raw mut capturing) }.result()?;
        Ok(capturing != 0)
    }

    /// A launch of which it is not known what is to be done with the arrays.
    #[inline(never)]
    fn launch_unsettled(&mut self, stream: &CudaStream) -> Result<(), GraphError> {
        check_earlier(stream)?;
        let reference = StreamRef::from(stream);
        let mut state = State::Settled;
        for array in &self.inner.arrays {
            state = state.max(array.state(&reference));
        }
        if state > State::Settled {
            self.settled_on.set(NOWHERE);
            return self.launch_in_order(stream, state);
        }
        let handle = stream.cu_stream().addr();
        if handle != PER_THREAD {
            self.settled_on.set(handle);
        }
        self.enqueuing.launch(self.driver, stream)
    }

    /// A launch whose arrays are to be ordered with what other streams do.
    #[inline(never)]
    fn launch_in_order(&mut self, stream: &CudaStream, state: State) -> Result<(), GraphError> {
        let _current = enter(&self.inner.context)?;
        let orders = || stream.context().is_managing_stream_synchronization();
        let alone = state == State::Tracked && !orders();
        let reference = if alone {
            // SAFETY: every array is settled, or tracked by what the stream is, which orders nothing
            // now; it is looked again below.
            unsafe { StreamRef::from(stream).alone() }
        } else {
            StreamRef::from(stream).of_one_launch()
        };
        let (enqueuing, driver) = (self.enqueuing, self.driver);
        let mut lost = None;
        acquired(&mut self.inner.arrays, 0, reference, &mut lost, &mut || {
            enqueuing.launch(driver, stream)
        })?;
        // Another thread made a second stream since, or nobody else would wait for the graph.
        if alone && orders() || lost.is_some() {
            let synchronised = synchronise(driver, stream);
            match lost {
                // If waiting failed too, nothing runs any more in the context.
                Some((index, error)) => {
                    return Err(GraphErrorKind::Finish { index, error }.into());
                }
                None => synchronised?,
            }
        }
        Ok(())
    }
}

impl Inner<'_> {
    /// Lets a node of the graph that `exec` was made from do something, or nothing. The graph's context must
    /// be current.
    pub(super) fn enable(
        &mut self,
        exec: CUgraphExec,
        index: usize,
        enabled: bool,
    ) -> Result<(), GraphError> {
        if self.nodes[index].enabled == enabled {
            return Ok(());
        }
        self.set_enabled(exec, index, enabled, self.nodes[index].off)
    }

    fn set_enabled(
        &mut self,
        exec: CUgraphExec,
        index: usize,
        enabled: bool,
        off: bool,
    ) -> Result<(), GraphError> {
        let _one = self.one_at_a_time();
        let node = &mut self.nodes[index];
        let on = enabled && !off;
        // SAFETY: `exec` was made from this graph, of which it is a kernel's node, a copy or a fill.
        unsafe { (self.functions.node_set_enabled)(exec, node.raw, on.into()) }
            .result()
            .map_err(|code| failed("cuGraphNodeSetEnabled", code))?;
        (node.enabled, node.off) = (enabled, off);
        Ok(())
    }
}

impl GraphExec<'static> {
    /// Launches the graph, and owns it until the launch is done; gives it back to whoever awaits, or
    /// [waits](After::wait), for that. Dropping the future keeps the graph until then.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ctx = gridcall::device(0)?;
    /// # let stream = ctx.new_stream()?;
    /// # let graph = gridcall::Graph::new(&ctx)?;
    /// let mut graph = graph.instantiate()?;
    /// for _ in 0..10 {
    ///     graph = graph.run(&stream)?.await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A graph that borrows its arrays cannot be owned so: [launch](GraphExec::launch) it, and await
    /// [`after(&stream, ())`](after).
    ///
    /// # Errors
    ///
    /// As [`launch`](GraphExec::launch) and [`after`]. The graph is then dropped.
    pub fn run(mut self, stream: &Arc<CudaStream>) -> Result<After<Self>, GraphError> {
        self.launch(stream)?;
        Ok(after(stream, self)?)
    }
}

/// What enqueues a graph, apart from its arrays. Begins the graph, so that a launch finds all that it
/// reads in one place.
#[derive(Clone, Copy)]
struct Enqueuing {
    raw: CUgraphExec,
    launch: unsafe extern "C" fn(CUgraphExec, CUstream) -> DriverCode,
    /// Whether kernels decide what of it runs.
    conditional: bool,
    /// Whether each launch is followed by a synchronisation.
    synchronous: bool,
}

impl Enqueuing {
    /// Enqueues the graph, whose arrays are acquired for the stream, which is of its context.
    #[inline]
    fn launch(self, driver: &Driver, stream: &CudaStream) -> Result<(), GraphError> {
        if self.conditional {
            // SAFETY: the graph is borrowed by the caller, which acquired its arrays for the stream.
            unsafe { launch_after_others(self.raw, stream) }?;
            return self.finish(driver, stream);
        }
        // SAFETY: the graph is borrowed by the caller; so is the stream.
        let code = unsafe { (self.launch)(self.raw, stream.cu_stream()) };
        if code.result().is_err() {
            // Another context may have been current, or none.
            let _current = enter(stream.context())?;
            // SAFETY: as above.
            unsafe { (self.launch)(self.raw, stream.cu_stream()) }
                .result()
                .map_err(|code| failed("cuGraphLaunch", code))?;
        }
        self.finish(driver, stream)
    }

    #[inline]
    fn finish(self, driver: &Driver, stream: &CudaStream) -> Result<(), GraphError> {
        if self.synchronous {
            synchronise(driver, stream)?;
        }
        Ok(())
    }
}

/// Tells of an error that cudarc stored where it could not be returned.
fn check_earlier(stream: &CudaStream) -> Result<(), GraphError> {
    let stored = stream.context().check_err();
    stored.map_err(|earlier| GraphErrorKind::Earlier(earlier).into())
}

#[cold]
pub(super) fn synchronise(driver: &Driver, stream: &CudaStream) -> Result<(), GraphError> {
    let _current = enter(stream.context())?;
    // SAFETY: the stream is borrowed and its context current.
    unsafe { (driver.stream_synchronize)(stream.cu_stream()) }
        .result()
        .map_err(|code| failed("cuStreamSynchronize", code))
}

/// Acquires all arrays, enqueues, and finishes them. `lost` takes the first array whose use could
/// not be recorded.
///
/// Guards are kept on the stack, some for each call, so that nothing is allocated.
fn acquired(
    arrays: &mut [Box<dyn Array + '_>],
    first: usize,
    stream: StreamRef<'_>,
    lost: &mut Option<(usize, ViewError)>,
    enqueue: &mut dyn FnMut() -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    const FEW: usize = 8;
    if arrays.is_empty() {
        return enqueue();
    }
    let (few, rest) = arrays.split_at_mut(FEW.min(arrays.len()));
    let mut guards = [const { Guard::none() }; FEW];
    for (index, (guard, array)) in (first..).zip(guards.iter_mut().zip(few)) {
        let acquired = array.acquire(stream);
        *guard = acquired.map_err(|error| GraphErrorKind::Array { index, error })?;
    }
    acquired(rest, first + FEW, stream, lost, enqueue)?;
    for (index, guard) in (first..).zip(guards) {
        if let Err(error) = guard.finish() {
            lost.get_or_insert((index, error));
        }
    }
    Ok(())
}

impl Drop for GraphExec<'_> {
    fn drop(&mut self) {
        let Ok(_current) = enter(&self.inner.context) else {
            return;
        };
        let one = self.inner.one_at_a_time();
        // One that runs is destroyed after it, by the driver. A failure leaks it.
        // SAFETY: the graph is this one's, and nobody else has it.
        let _ = unsafe { (self.inner.functions.exec_destroy)(self.enqueuing.raw) };
        if let Some(mut one) = one {
            self.after = None;
            one.forget_ended();
        }
    }
}

/// The buffers that a graph owned.
pub struct GraphBuffers {
    graph: usize,
    buffers: Vec<Option<Box<dyn Any + Send>>>,
}

impl GraphBuffers {
    /// The buffer that was given to the graph, by what stands for it, or for a part of it.
    ///
    /// # Errors
    ///
    /// If it was not the graph's own, or is taken already.
    pub fn take<T: 'static>(&mut self, slice: GraphSliceMut<T>) -> Result<Buffer<T>, GraphError> {
        let &Part { graph, array, .. } = slice.part();
        if graph != self.graph {
            return Err(GraphErrorKind::OtherGraph { what: "the array" }.into());
        }
        let taken = self.buffers[array].take().ok_or(GraphErrorKind::NotOwned)?;
        match taken.downcast() {
            Ok(buffer) => Ok(*buffer),
            Err(other) => {
                self.buffers[array] = Some(other);
                Err(GraphErrorKind::NotOwned.into())
            }
        }
    }
}

impl fmt::Debug for GraphExec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphExec")
            .field("nodes", &self.inner.nodes.len())
            .field("arrays", &self.inner.arrays.len())
            .field("device", &self.inner.context.ordinal())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GraphBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuffers").finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use cudarc::driver::sys;

    use super::*;
    use crate::{Graph, cover, device, kernel};

    #[kernel(ptx = "../kernels/vector.ptx", crate = crate)]
    unsafe extern "C" {
        #[requires(y.len() >= n)]
        safe fn fill(y: &mut [f32], v: f32, n: i32);
    }

    #[test]
    fn updates_of_graphs_with_conditions_are_made_one_at_a_time() {
        let context = device(0).unwrap();
        let mut graph = Graph::new(&context).unwrap();
        let zeros = Buffer::<f32>::zeroed(&context.default_stream(), 8).unwrap();
        let mut y = graph.own(zeros).unwrap();
        let go = graph.condition(1).unwrap();
        let mut node = None;
        let body = |body: &mut Graph<'_>| {
            let (y, v) = (&mut y, 1.0);
            node = Some(body.add(cover(8), fill { y, v, n: 8 })?);
            Ok(())
        };
        graph.if_(go, body).unwrap();
        let node = node.unwrap();
        let mut exec = graph.instantiate().unwrap();
        // The same arrays, and a shape that differs.
        for n in [8_i32, 4] {
            let one = exec.inner.one_at_a_time().unwrap();
            let (done, is_done) = mpsc::channel();
            thread::scope(|scope| {
                let (exec, y) = (&mut exec, &mut y);
                scope.spawn(move || {
                    let (launch, v) = (cover(n.unsigned_abs()), 2.0);
                    exec.update(node, launch, fill { y, v, n }).unwrap();
                    done.send(()).unwrap();
                });
                let early = is_done.recv_timeout(Duration::from_millis(100));
                drop(one);
                assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "{n}");
            });
        }
    }

    #[test]
    fn priorities_of_nodes_are_heeded_where_one_has_one() {
        let context = device(0).unwrap();
        let flags = |launch: Launch<'_>| {
            let mut graph = Graph::new(&context).unwrap();
            let zeros = Buffer::<f32>::zeroed(&context.default_stream(), 8).unwrap();
            let mut y = graph.own(zeros).unwrap();
            for launch in [cover(8), launch, cover(8)] {
                let (y, v) = (&mut y, 1.0);
                graph.add(launch, fill { y, v, n: 8 }).unwrap();
            }
            let exec = graph.instantiate().unwrap();
            let mut flags = 0;
            // SAFETY: the graph is alive; `flags` takes the answer.
            unsafe { sys::cuGraphExecGetFlags(exec.raw(), &raw mut flags) }
                .result()
                .unwrap();
            flags
        };
        assert_eq!(flags(cover(8)), 0);
        assert_eq!(flags(cover(8).priority(0)), 8);
    }
}
