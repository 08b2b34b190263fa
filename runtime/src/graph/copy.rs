//! Nodes that copy and fill.

use std::ptr;

use bytemuck::Zeroable;
use cudarc::driver::sys::{self, CUgraphExec, CUgraphNode};

use super::{
    Graph, GraphExec, Inner, Node,
    array::{GraphSlice, GraphSliceMut},
    enter,
    error::{GraphError, GraphErrorKind},
    failed,
    order::Access,
};
use crate::arg::KernelArg;

/// What a node does to memory, if it is no kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moves {
    Copy,
    Fill,
    /// A copy or a fill of no elements, which is an empty node to the driver.
    Nothing,
}

impl Graph<'_> {
    /// Adds a copy of elements from one array, or part of it, to another.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the parts overlap, or the driver refuses.
    pub fn copy<T>(
        &mut self,
        from: impl Into<GraphSlice<T>>,
        to: GraphSliceMut<T>,
    ) -> Result<Node, GraphError> {
        let copy = self.inner.copy_of(from.into(), to)?;
        let node = self.add_node(&copy.accesses(), |inner, node, after| {
            if copy.bytes == 0 {
                // SAFETY: `node` takes the answer; `after` are nodes of this graph.
                return unsafe { inner.add_empty(node, after) };
            }
            let params = copy.params();
            let (functions, context) = (inner.functions, inner.context.cu_ctx());
            // SAFETY: `node` takes the answer; the graph and `after` are the driver's own; both
            // parts hold so many bytes, and live as long as the graph.
            unsafe {
                (functions.add_memcpy_node)(
                    node,
                    inner.body(),
                    after.as_ptr(),
                    after.len(),
                    &raw const params,
                    context,
                )
            }
            .result()
            .map_err(|code| failed("cuGraphAddMemcpyNode", code))
        })?;
        self.inner.nodes[node.index].moves = Some(match copy.bytes {
            0 => Moves::Nothing,
            _ => Moves::Copy,
        });
        Ok(node)
    }

    /// Adds a fill of an array, or part of it, with one value of 1, 2 or 4 bytes.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn fill<T: KernelArg>(
        &mut self,
        to: GraphSliceMut<T>,
        value: T,
    ) -> Result<Node, GraphError> {
        let fill = self.inner.fill_of(to, value)?;
        self.add_fill(&fill)
    }

    /// Adds a fill of an array, or part of it, with zeros.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn clear<T: Zeroable>(&mut self, to: GraphSliceMut<T>) -> Result<Node, GraphError> {
        let fill = self.inner.clear_of(to)?;
        self.add_fill(&fill)
    }

    fn add_fill(&mut self, fill: &Fill) -> Result<Node, GraphError> {
        let node = self.add_node(&[fill.writes], |inner, node, after| {
            if fill.len == 0 {
                // SAFETY: `node` takes the answer; `after` are nodes of this graph.
                return unsafe { inner.add_empty(node, after) };
            }
            let params = fill.params();
            let (functions, context) = (inner.functions, inner.context.cu_ctx());
            // SAFETY: `node` takes the answer; the graph and `after` are the driver's own; the part
            // holds so many elements, and lives as long as the graph.
            unsafe {
                (functions.add_memset_node)(
                    node,
                    inner.body(),
                    after.as_ptr(),
                    after.len(),
                    &raw const params,
                    context,
                )
            }
            .result()
            .map_err(|code| failed("cuGraphAddMemsetNode", code))
        })?;
        self.inner.nodes[node.index].moves = Some(match fill.len {
            0 => Moves::Nothing,
            _ => Moves::Fill,
        });
        Ok(node)
    }
}

impl GraphExec<'_> {
    /// Lets a node that [copies](Graph::copy) copy other elements, for launches from now on: of arrays of
    /// this graph, by the rules of an [update](GraphExec::update). Their number may be another.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut graph = Graph::new(&ctx)?;
    /// let x = graph.own(Buffer::from_slice(&stream, &[1, 2, 3, 4])?)?;
    /// let y = graph.own(Buffer::from_slice(&stream, &[0; 4])?)?;
    /// let copy = graph.copy(x, y)?;
    /// let fill = graph.fill(y.slice_mut(..1)?, 7)?;
    /// let mut graph = graph.instantiate()?;
    /// graph.update_copy(copy, x.as_slice().slice(..2)?, y.slice_mut(2..)?)?;
    /// graph.update_fill(fill, y.slice_mut(1..2)?, 9)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [0, 9, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the node is of another graph, does not copy, or did not when the graph was instantiated since
    /// it was given no elements; the lengths differ; the parts overlap; it would conflict with a node
    /// that runs beside it; or the driver refuses. The node is then as it was.
    pub fn update_copy<T>(
        &mut self,
        node: Node,
        from: impl Into<GraphSlice<T>>,
        to: GraphSliceMut<T>,
    ) -> Result<(), GraphError> {
        let copy = self.inner.copy_of(from.into(), to)?;
        let accesses = copy.accesses();
        self.update_moves(
            node,
            Moves::Copy,
            &accesses,
            copy.bytes,
            |inner, exec, raw| {
                let params = copy.params();
                let context = inner.context.cu_ctx();
                // SAFETY: the node is one of the graph that `exec` was made from, and copies; both parts
                // hold so many bytes, and live as long as the graph.
                unsafe {
                    (inner.functions.exec_memcpy_node_set_params)(
                        exec,
                        raw,
                        &raw const params,
                        context,
                    )
                }
                .result()
                .map_err(|code| failed("cuGraphExecMemcpyNodeSetParams", code))
            },
        )
    }

    /// Lets a node that [fills](Graph::fill) or [clears](Graph::clear) fill other elements, for launches
    /// from now on, with this value of 1, 2 or 4 bytes; else as [`update_copy`](GraphExec::update_copy).
    ///
    /// # Errors
    ///
    /// As [`update_copy`](GraphExec::update_copy), of a node that does not fill.
    pub fn update_fill<T: KernelArg>(
        &mut self,
        node: Node,
        to: GraphSliceMut<T>,
        value: T,
    ) -> Result<(), GraphError> {
        let fill = self.inner.fill_of(to, value)?;
        self.set_fill(node, &fill)
    }

    /// Lets a node that [fills](Graph::fill) or [clears](Graph::clear) clear other elements, for launches
    /// from now on; else as [`update_copy`](GraphExec::update_copy).
    ///
    /// # Errors
    ///
    /// As [`update_copy`](GraphExec::update_copy), of a node that does not fill.
    pub fn update_clear<T: Zeroable>(
        &mut self,
        node: Node,
        to: GraphSliceMut<T>,
    ) -> Result<(), GraphError> {
        let fill = self.inner.clear_of(to)?;
        self.set_fill(node, &fill)
    }

    fn set_fill(&mut self, node: Node, fill: &Fill) -> Result<(), GraphError> {
        self.update_moves(
            node,
            Moves::Fill,
            &[fill.writes],
            fill.len,
            |inner, exec, raw| {
                let params = fill.params();
                let context = inner.context.cu_ctx();
                // SAFETY: the node is one of the graph that `exec` was made from, and fills; the part holds
                // so many elements, and lives as long as the graph.
                unsafe {
                    (inner.functions.exec_memset_node_set_params)(
                        exec,
                        raw,
                        &raw const params,
                        context,
                    )
                }
                .result()
                .map_err(|code| failed("cuGraphExecMemsetNodeSetParams", code))
            },
        )
    }

    /// Lets a node do these by `set`, or nothing if there are no elements.
    fn update_moves(
        &mut self,
        node: Node,
        moves: Moves,
        accesses: &[Access],
        len: usize,
        set: impl FnOnce(&Inner<'_>, CUgraphExec, CUgraphNode) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        let exec = self.raw();
        let inner = &mut self.inner;
        inner.is_own_node(node)?;
        let this = &inner.nodes[node.index];
        if this.moves != Some(moves) {
            let (node, is) = (
                node.index,
                this.moves.map_or("neither copies nor fills", Moves::what),
            );
            let asked = moves.what();
            return Err(GraphErrorKind::OtherWork { node, is, asked }.into());
        }
        let _current = enter(&inner.context)?;
        if accesses != inner.order.accesses(node.index)
            && let Some(other) = inner.order.beside(node.index, accesses)
        {
            let node = node.index;
            return Err(GraphErrorKind::Unordered { node, other }.into());
        }
        // A node that could not be turned off still does what it did, with what it used.
        if len == 0 {
            inner.enable(exec, node.index, false)?;
            inner.order.set_accesses(node.index, accesses);
            return Ok(());
        }
        let one = inner.one_at_a_time();
        set(inner, exec, inner.nodes[node.index].raw)?;
        drop(one);
        inner.order.set_accesses(node.index, accesses);
        inner.enable(exec, node.index, true)
    }
}

impl Moves {
    /// What a node does, in words.
    fn what(self) -> &'static str {
        match self {
            Moves::Copy => "copies",
            Moves::Fill => "fills",
            Moves::Nothing => "was built of no elements and does nothing",
        }
    }
}

/// A copy within device memory.
struct Copy {
    reads: Access,
    writes: Access,
    bytes: usize,
}

/// A fill of device memory.
struct Fill {
    writes: Access,
    value: u32,
    /// The size of an element, of which there are so many.
    size: u32,
    len: usize,
}

impl Inner<'_> {
    fn copy_of<T>(&self, from: GraphSlice<T>, to: GraphSliceMut<T>) -> Result<Copy, GraphError> {
        self.is_own(from.part())?;
        self.is_own(to.part())?;
        let (reads, writes) = (from.part().access::<T>(false), to.part().access::<T>(true));
        if from.len() != to.len() {
            let (from, to) = (from.len(), to.len());
            return Err(GraphErrorKind::Length { from, to }.into());
        }
        if reads.start < writes.end && writes.start < reads.end {
            return Err(GraphErrorKind::Overlap.into());
        }
        let bytes = to.len() * size_of::<T>();
        Ok(Copy {
            reads,
            writes,
            bytes,
        })
    }

    fn fill_of<T: KernelArg>(&self, to: GraphSliceMut<T>, value: T) -> Result<Fill, GraphError> {
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4) && T::LAYOUT.size == size_of::<T>(),
                "the driver fills with values of 1, 2 or 4 bytes; use `clear`, or a kernel"
            );
        }
        self.is_own(to.part())?;
        let mut bits = [0_u8; 4];
        // SAFETY: the value has at most four bytes.
        unsafe { value.write(bits.as_mut_ptr()) };
        let (value, size) = match size_of::<T>() {
            1 => (u32::from(bits[0]), 1),
            2 => (u32::from(u16::from_ne_bytes([bits[0], bits[1]])), 2),
            _ => (u32::from_ne_bytes(bits), 4),
        };
        Ok(Fill {
            writes: to.part().access::<T>(true),
            value,
            size,
            len: to.len(),
        })
    }

    fn clear_of<T: Zeroable>(&self, to: GraphSliceMut<T>) -> Result<Fill, GraphError> {
        self.is_own(to.part())?;
        Ok(Fill {
            writes: to.part().access::<T>(true),
            value: 0,
            size: 1,
            len: to.len() * size_of::<T>(),
        })
    }
}

impl Copy {
    fn accesses(&self) -> [Access; 2] {
        [self.reads, self.writes]
    }

    fn params(&self) -> sys::CUDA_MEMCPY3D {
        one_row(self.reads.start, self.writes.start, self.bytes)
    }
}

impl Fill {
    fn params(&self) -> sys::CUDA_MEMSET_NODE_PARAMS {
        sys::CUDA_MEMSET_NODE_PARAMS {
            dst: self.writes.start,
            pitch: 0,
            value: self.value,
            elementSize: self.size,
            width: self.len,
            height: 1,
        }
    }
}

/// A copy of contiguous bytes from one device address to another.
fn one_row(from: u64, to: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
    let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: ptr::null(),
        srcDevice: from,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: ptr::null_mut(),
        dstDevice: to,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}
