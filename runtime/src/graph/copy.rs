//! Nodes that copy and fill.

use std::ptr;

use bytemuck::Zeroable;
use cudarc::driver::sys;

use super::{
    Graph, Node,
    array::{GraphSlice, GraphSliceMut},
    error::{GraphError, GraphErrorKind},
    failed,
};
use crate::arg::KernelArg;

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
        let from = from.into();
        self.inner.is_own(from.part())?;
        self.inner.is_own(to.part())?;
        let (reads, writes) = (from.part().access::<T>(false), to.part().access::<T>(true));
        if from.len() != to.len() {
            let (from, to) = (from.len(), to.len());
            return Err(GraphErrorKind::Length { from, to }.into());
        }
        if reads.start < writes.end && writes.start < reads.end {
            return Err(GraphErrorKind::Overlap.into());
        }
        let bytes = to.len() * size_of::<T>();
        self.add_node(&[reads, writes], |inner, node, after| {
            if bytes == 0 {
                // SAFETY: `node` takes the answer; `after` are nodes of this graph.
                return unsafe { inner.add_empty(node, after) };
            }
            let copy = one_row(reads.start, writes.start, bytes);
            let (functions, context) = (inner.functions, inner.context.cu_ctx());
            // SAFETY: `node` takes the answer; the graph and `after` are the driver's own; both
            // parts hold so many bytes, and live as long as the graph.
            unsafe {
                (functions.add_memcpy_node)(
                    node,
                    inner.raw,
                    after.as_ptr(),
                    after.len(),
                    &raw const copy,
                    context,
                )
            }
            .result()
            .map_err(|code| failed("cuGraphAddMemcpyNode", code))
        })
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
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4) && T::LAYOUT.size == size_of::<T>(),
                "the driver fills with values of 1, 2 or 4 bytes; use `clear`, or a kernel"
            );
        }
        let mut bits = [0_u8; 4];
        // SAFETY: the value has at most four bytes.
        unsafe { value.write(bits.as_mut_ptr()) };
        let bits = match size_of::<T>() {
            1 => u32::from(bits[0]),
            2 => u32::from(u16::from_ne_bytes([bits[0], bits[1]])),
            _ => u32::from_ne_bytes(bits),
        };
        self.set(to, bits, size_of::<T>(), to.len())
    }

    /// Adds a fill of an array, or part of it, with zeros.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn clear<T: Zeroable>(&mut self, to: GraphSliceMut<T>) -> Result<Node, GraphError> {
        self.set(to, 0, 1, to.len() * size_of::<T>())
    }

    fn set<T>(
        &mut self,
        to: GraphSliceMut<T>,
        value: u32,
        size: usize,
        len: usize,
    ) -> Result<Node, GraphError> {
        self.inner.is_own(to.part())?;
        let writes = to.part().access::<T>(true);
        self.add_node(&[writes], |inner, node, after| {
            if len == 0 {
                // SAFETY: `node` takes the answer; `after` are nodes of this graph.
                return unsafe { inner.add_empty(node, after) };
            }
            let params = sys::CUDA_MEMSET_NODE_PARAMS {
                dst: writes.start,
                pitch: 0,
                value,
                elementSize: u32::try_from(size).unwrap_or(1),
                width: len,
                height: 1,
            };
            let (functions, context) = (inner.functions, inner.context.cu_ctx());
            // SAFETY: `node` takes the answer; the graph and `after` are the driver's own; the part
            // holds so many elements, and lives as long as the graph.
            unsafe {
                (functions.add_memset_node)(
                    node,
                    inner.raw,
                    after.as_ptr(),
                    after.len(),
                    &raw const params,
                    context,
                )
            }
            .result()
            .map_err(|code| failed("cuGraphAddMemsetNode", code))
        })
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
