//! Recording what others enqueue on a stream into a graph.

use std::{
    ffi::c_int,
    fmt,
    marker::PhantomData,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, DriverError, SyncOnDrop, sys,
    sys::{CUgraph, CUgraphNode},
};

use super::{
    Graph, GraphError, GraphErrorKind, Inner, Node,
    array::{GraphSlice, GraphSliceMut, Part},
    enter,
    functions::Functions,
    not_added, not_empty,
    order::{Access, Uses},
};
use crate::{
    buffer::is_capturing,
    call::{attributes_of_node, has_attributes},
    driver::DriverCode,
    kernel::{Arguments, Declared, Safe},
    launch::Launch,
    params::launch_with,
    relaxed::RelaxedCapture,
};

/// A stream that is being captured into a graph; see [`Graph::capture`].
pub struct Capture<'g, 'a> {
    graph: &'g mut Graph<'a>,
    stream: &'g Arc<CudaStream>,
    /// Whether the stream is still being captured.
    active: bool,
    /// Dropped after the capture is ended.
    _counted: Counted,
}

/// How many captures there are.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// One of them, as long as it lives.
struct Counted;

impl Counted {
    fn begin() -> Counted {
        CAPTURES.fetch_add(1, SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        CAPTURES.fetch_sub(1, SeqCst);
    }
}

/// Whether a stream is captured into a graph of this crate.
pub(crate) fn is_any_captured() -> bool {
    CAPTURES.load(SeqCst) > 0
}

/// An array of a graph for cudarc and its libraries, while a stream is captured. Lending it waits
/// for nothing and records nothing.
pub struct CaptureSlice<'c, T> {
    stream: &'c Arc<CudaStream>,
    part: Part,
    elements: PhantomData<fn() -> T>,
}

/// As [`CaptureSlice`], for writing too.
pub struct CaptureSliceMut<'c, T>(CaptureSlice<'c, T>);

impl<'a> Graph<'a> {
    /// Records what `record` enqueues on a stream, such as calls of cudarc's libraries, by capturing
    /// the stream into this graph. Nothing of it is run now.
    ///
    /// What is recorded runs after all nodes that were added before it, and before all that are added
    /// after it. Arrays of the graph are lent to libraries by [`Capture::slice`] and
    /// [`Capture::slice_mut`]; kernels are launched by [`Capture::launch`], and their nodes can be
    /// updated.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph, GraphError, cover, kernel};
    ///
    /// #[kernel(ptx = "../kernels/vector.ptx")]
    /// unsafe extern "C" {
    ///     #[requires(y.len() >= n)]
    ///     pub safe fn scale(y: &mut [f32], a: f32, n: i32);
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let mut y = graph.own(Buffer::<f32>::zeroed(&stream, 3)?)?;
    /// let record = |capture: &mut gridcall::Capture<'_, '_>| {
    ///     stream.memset_zeros(&mut capture.slice_mut(y)?)?;
    ///     capture.launch(cover(3), scale { y: &mut y, a: 2.0, n: 3 })?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// };
    /// // SAFETY: all that is enqueued uses an array of the graph.
    /// unsafe { graph.capture(&stream, record) }?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// While it lasts, this thread must not allocate, synchronise or wait for another stream by other
    /// means than this crate's: the driver ends the capture then. A kernel that is not loaded is
    /// loaded in a way that does not disturb it.
    ///
    /// # Safety
    ///
    /// All that is enqueued on the stream meanwhile, other than by [`Capture::launch`], must be
    /// right at every launch of the graph: what it uses must be alive then and used by nobody else, be
    /// it an array that is not the graph's own, a library's workspace or memory of the host. cudarc
    /// would record events for arrays of its own, by which these could not be used any more; lend
    /// arrays of the graph.
    ///
    /// # Errors
    ///
    /// If the stream is in another context, cannot be captured or is being captured, `record` fails,
    /// or the driver ended the capture. The graph is incomplete then, and cannot be instantiated.
    pub unsafe fn capture<R, E: From<GraphError>>(
        &mut self,
        stream: &Arc<CudaStream>,
        record: impl FnOnce(&mut Capture<'_, 'a>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut capture = Capture::begin(self, stream)?;
        // If this is left by an error or a panic, the capture is ended by its drop.
        let recorded = record(&mut capture)?;
        capture.end()?;
        Ok(recorded)
    }
}

impl<'g, 'a> Capture<'g, 'a> {
    fn begin(graph: &'g mut Graph<'a>, stream: &'g Arc<CudaStream>) -> Result<Self, GraphError> {
        /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
        const THREAD_LOCAL: c_int = 1;
        graph.is_complete()?;
        graph.is_of(stream.context())?;
        let inner = &mut graph.inner;
        let _current = enter(&inner.context)?;
        if is_capturing(stream.cu_stream())? {
            return Err(GraphErrorKind::Capturing.into());
        }
        let after = inner.order.before(&all(&[]));
        let after: Vec<_> = after.iter().map(|&index| inner.nodes[index].raw).collect();
        let counted = Counted::begin();
        // SAFETY: the stream is borrowed and its context current; the graph and `after` are the
        // driver's own; no edge has data.
        unsafe {
            (inner.functions.begin_capture_to_graph)(
                stream.cu_stream(),
                inner.body(),
                after.as_ptr(),
                ptr::null(),
                after.len(),
                THREAD_LOCAL,
            )
        }
        .result()
        .map_err(|code| failed("cuStreamBeginCaptureToGraph", code))?;
        Ok(Capture {
            graph,
            stream,
            active: true,
            _counted: counted,
        })
    }

    /// The stream that is captured.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.stream
    }

    /// Launches a safe kernel into the graph, with arrays of the graph as arguments.
    ///
    /// # Errors
    ///
    /// As for [`Graph::add`]; and if the capture has been ended by the driver.
    pub fn launch<'e, A>(
        &mut self,
        launch: impl Into<Launch<'e>>,
        arguments: A,
    ) -> Result<Node<A::Declared>, GraphError>
    where
        A: Arguments<Declared: Declared<Safety = Safe>>,
    {
        // SAFETY: every caller of a safe kernel is safe, as its declaration vouches.
        unsafe { self.launch_unsafe(launch, arguments) }
    }

    /// Launches any kernel into the graph.
    ///
    /// # Safety
    ///
    /// What the kernel's declaration asks of its callers must hold at every launch of the graph.
    ///
    /// # Errors
    ///
    /// As for [`launch`](Capture::launch).
    pub unsafe fn launch_unsafe<'e, A: Arguments>(
        &mut self,
        launch: impl Into<Launch<'e>>,
        mut arguments: A,
    ) -> Result<Node<A::Declared>, GraphError> {
        let inner = &mut self.graph.inner;
        let _current = enter(&inner.context)?;
        let kernel = {
            // Loading allocates.
            let _relaxed = RelaxedCapture::enter();
            inner.find::<A>()?
        };
        let launch = launch.into();
        let attributes = attributes_of_node(&kernel, &launch)?;
        let examined = has_attributes::<A::Declared>(&kernel, &launch).then_some(&attributes);
        let (dims, mut params) = inner.check(&kernel, launch, examined, &mut arguments)?;
        let uses = all(inner.noted.get_mut());
        let (shown, stream) = (
            not_empty(&kernel, dims, &attributes),
            self.stream.cu_stream(),
        );
        // SAFETY: the kernel is loaded in the stream's context, which is current; the stream is
        // borrowed; the arguments have been checked, and are copied by the driver.
        unsafe {
            launch_with(
                &kernel,
                shown.numbers(),
                stream,
                &attributes,
                params.as_mut(),
            )
        }
        .result()
        .map_err(|code| {
            let call = if attributes.any() {
                "cuLaunchKernelEx"
            } else {
                "cuLaunchKernel"
            };
            not_added(&kernel, dims, &attributes, call, code)
        })?;
        let [raw] = frontier(inner, self.stream)?[..] else {
            return Err(GraphErrorKind::Incomplete.into());
        };
        let after = inner.order.before(&uses);
        let node = inner.note_node(raw, after, uses);
        let this = &mut inner.nodes[node.index];
        this.enabled = !dims.is_empty();
        this.attributes = attributes.boxed();
        this.kernel = Some(kernel);
        Ok(node.of_kernel())
    }

    /// Lends an array of the graph to a library, for reading.
    ///
    /// # Errors
    ///
    /// If it is of another graph.
    pub fn slice<T>(
        &self,
        slice: impl Into<GraphSlice<T>>,
    ) -> Result<CaptureSlice<'g, T>, GraphError> {
        let part = *slice.into().part();
        self.graph.inner.is_own(&part)?;
        Ok(CaptureSlice {
            stream: self.stream,
            part,
            elements: PhantomData,
        })
    }

    /// Lends an array of the graph to a library, for writing.
    ///
    /// # Errors
    ///
    /// If it is of another graph.
    pub fn slice_mut<T>(
        &self,
        slice: GraphSliceMut<T>,
    ) -> Result<CaptureSliceMut<'g, T>, GraphError> {
        self.slice(slice).map(CaptureSliceMut)
    }

    /// Ends the capture, and notes what later nodes come after.
    fn end(mut self) -> Result<(), GraphError> {
        let inner = &mut self.graph.inner;
        let _current = enter(&inner.context)?;
        let last = frontier(inner, self.stream);
        // Ended in any case, and by the drop if this fails.
        let last = last?;
        self.active = false;
        self.graph.incomplete = true;
        let inner = &mut self.graph.inner;
        end(inner.functions, self.stream).map_err(|code| failed("cuStreamEndCapture", code))?;
        inner.check_body()?;
        self.graph.incomplete = false;
        let known = |raw: &CUgraphNode| inner.nodes.iter().any(|node| node.raw == *raw);
        let raw = match last[..] {
            // Nothing was recorded since, or before.
            [] => return Ok(()),
            [raw] if known(&raw) => return Ok(()),
            [raw] => raw,
            _ if last.iter().all(known) => return Ok(()),
            _ => {
                let mut raw = ptr::null_mut();
                // SAFETY: `raw` takes the answer; the nodes are of this graph.
                unsafe { inner.add_empty(&raw mut raw, &last) }?;
                raw
            }
        };
        let uses = all(&[]);
        let after = inner.order.before(&uses);
        inner.note_node(raw, after, uses);
        Ok(())
    }
}

/// What uses these, and perhaps others.
fn all(accesses: &[Access]) -> Uses {
    Uses {
        accesses: accesses.to_vec(),
        all: true,
    }
}

/// The nodes that what is enqueued next would come after.
fn frontier(inner: &Inner<'_>, stream: &CudaStream) -> Result<Vec<CUgraphNode>, GraphError> {
    const ACTIVE: u32 = 1;
    const CALL: &str = "cuStreamGetCaptureInfo";
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
    const INVALIDATED: DriverCode = DriverCode(901);
    let (mut status, mut id, mut count) = (0, 0, 0);
    let mut graph: CUgraph = ptr::null_mut();
    let mut nodes = ptr::null();
    // SAFETY: the stream is borrowed and its context current; each place takes an answer, or is null.
    unsafe {
        (inner.functions.get_capture_info)(
            stream.cu_stream(),
            &raw mut status,
            &raw mut id,
            &raw mut graph,
            &raw mut nodes,
            ptr::null_mut(),
            &raw mut count,
        )
    }
    .result()
    .map_err(|code| failed(CALL, code))?;
    if status != ACTIVE || graph != inner.body() {
        return Err(failed(CALL, INVALIDATED));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the driver's array of so many nodes is valid until its next call for this stream.
    Ok(unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec())
}

fn end(functions: &Functions, stream: &CudaStream) -> Result<(), DriverCode> {
    let mut graph = ptr::null_mut();
    // SAFETY: the stream is borrowed; `graph` takes the answer, which is the graph it was begun with.
    unsafe { (functions.end_capture)(stream.cu_stream(), &raw mut graph) }.result()
}

impl Drop for Capture<'_, '_> {
    fn drop(&mut self) {
        if self.active {
            self.graph.incomplete = true;
            let inner = &self.graph.inner;
            if let Ok(_current) = enter(&inner.context) {
                // What is wrong has been told, or is a panic.
                let _ = end(inner.functions, self.stream);
            }
        }
    }
}

#[cold]
fn failed(call: &'static str, code: DriverCode) -> GraphError {
    GraphErrorKind::Capture { call, code }.into()
}

impl<T> CaptureSlice<'_, T> {
    /// Lends the address on the captured stream. On another it is null, so that the driver refuses
    /// what would use it, and the error is stored in the context, as cudarc does.
    fn lend<'s>(&'s self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        let mut pointer = self.part.pointer;
        if stream.cu_stream() != self.stream.cu_stream() {
            let other = DriverError(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
            stream.context().record_err::<()>(Err(other));
            pointer = 0;
        }
        (pointer, SyncOnDrop::Record(None))
    }
}

impl<T> DeviceSlice<T> for CaptureSlice<'_, T> {
    fn len(&self) -> usize {
        self.part.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.stream
    }
}

impl<T> DevicePtr<T> for CaptureSlice<'_, T> {
    fn device_ptr<'s>(&'s self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        self.lend(stream)
    }
}

impl<T> DeviceSlice<T> for CaptureSliceMut<'_, T> {
    fn len(&self) -> usize {
        self.0.part.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.0.stream
    }
}

impl<T> DevicePtr<T> for CaptureSliceMut<'_, T> {
    fn device_ptr<'s>(&'s self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        self.0.lend(stream)
    }
}

impl<T> DevicePtrMut<T> for CaptureSliceMut<'_, T> {
    fn device_ptr_mut<'s>(&'s mut self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        self.0.lend(stream)
    }
}

impl fmt::Debug for Capture<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for CaptureSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureSlice")
            .field("len", &self.part.len)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for CaptureSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureSliceMut")
            .field("len", &self.0.part.len)
            .finish_non_exhaustive()
    }
}
