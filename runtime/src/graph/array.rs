//! The arrays of a graph: as the graph keeps them, and what stands for them in its nodes.

use std::{
    any::Any,
    ffi::c_void,
    fmt,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
    ptr,
};

use cudarc::driver::CudaContext;
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, Place, StreamRef, View, ViewError};

use super::{checked::is_checked, order::Access};
use crate::{
    buffer::Buffer,
    call::FOREIGN,
    error::{BufferError, BufferErrorKind},
};

/// Stands for an array of a graph, or a part of one, in nodes that read it. Made by
/// [`Graph::read`](super::Graph::read); cheap to copy, and means nothing elsewhere.
pub struct GraphSlice<T> {
    part: Part,
    elements: PhantomData<fn() -> T>,
}

/// Stands for an array of a graph, or a part of one, in nodes that read or write it. Made by
/// [`Graph::write`](super::Graph::write) and [`Graph::own`](super::Graph::own); cheap to copy, and
/// means nothing elsewhere.
pub struct GraphSliceMut<T> {
    part: Part,
    elements: PhantomData<fn() -> T>,
}

/// Which elements of which array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) graph: usize,
    /// Among the graph's arrays.
    pub(super) array: usize,
    /// The address of the first element.
    pub(super) pointer: u64,
    /// The number of the first element in the array.
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Part {
    pub(super) fn access<T>(&self, writes: bool) -> Access {
        Access {
            start: self.pointer,
            end: self.pointer + (self.len * size_of::<T>()) as u64,
            writes,
        }
    }

    fn slice<T>(self, range: impl RangeBounds<usize>) -> Result<Part, BufferError> {
        let len = self.len;
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => len,
        };
        if start > end || end > len {
            return Err(BufferErrorKind::Range { start, end, len }.into());
        }
        Ok(Part {
            pointer: self.pointer + (start * size_of::<T>()) as u64,
            start: self.start + start,
            len: end - start,
            ..self
        })
    }

    /// The view that only the check of a node of the graph understands.
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        is_checked(self.graph)?;
        let place = Place::Context {
            context: ptr::null_mut(),
            device: FOREIGN,
        };
        // It can be copied, so that it is not exclusive.
        Ok(View::new(self.pointer, self.len, place).tracked_by(tracker(self.graph)))
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("pointer", &format_args!("{:#x}", self.pointer))
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// What views of a graph's arrays are tracked by: its number, which is odd, and so no object's
/// address.
#[inline(always)]
pub(super) fn tracker(graph: usize) -> *const c_void {
    ptr::without_provenance(graph)
}

impl<T> GraphSlice<T> {
    pub(super) fn of(part: Part) -> Self {
        GraphSlice {
            part,
            elements: PhantomData,
        }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.part.len == 0
    }

    /// Some of the elements.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self, BufferError> {
        self.part.slice::<T>(range).map(GraphSlice::of)
    }
}

impl<T> GraphSliceMut<T> {
    pub(super) fn of(part: Part) -> Self {
        GraphSliceMut {
            part,
            elements: PhantomData,
        }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.part.len == 0
    }

    /// The same elements, for reading.
    #[must_use]
    pub fn as_slice(&self) -> GraphSlice<T> {
        GraphSlice::of(self.part)
    }

    /// Some of the elements.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn slice_mut(&self, range: impl RangeBounds<usize>) -> Result<Self, BufferError> {
        self.part.slice::<T>(range).map(GraphSliceMut::of)
    }

    /// The elements before `middle` and those from there on. Nodes that write one of them each may
    /// run beside each other.
    ///
    /// # Errors
    ///
    /// If `middle` is beyond the end.
    pub fn split_at_mut(&self, middle: usize) -> Result<(Self, Self), BufferError> {
        Ok((self.slice_mut(..middle)?, self.slice_mut(middle..)?))
    }
}

impl<T> From<GraphSliceMut<T>> for GraphSlice<T> {
    fn from(slice: GraphSliceMut<T>) -> GraphSlice<T> {
        slice.as_slice()
    }
}

// SAFETY: it can be described only while a node of its graph is checked, and never acquired. The
// graph keeps the array, whose elements these are, as long as the node can run, and acquires it for
// each of its launches.
unsafe impl<T> AsDeviceView<T> for GraphSlice<T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.part.describe()
    }

    fn acquire<'a>(&'a self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Err(not_acquired())
    }
}

// SAFETY: as for `GraphSlice`.
unsafe impl<T> AsDeviceView<T> for GraphSliceMut<T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.part.describe()
    }

    fn acquire<'a>(&'a self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Err(not_acquired())
    }
}

// SAFETY: as for `GraphSlice`; the graph keeps arrays that it writes to itself.
unsafe impl<T> AsDeviceViewMut<T> for GraphSliceMut<T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.part.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Err(not_acquired())
    }
}

#[cold]
fn not_acquired() -> ViewError {
    ViewError::other("it stands for an array of a graph, and cannot be used by a launch")
}

/// An array, as a graph keeps it.
pub(super) trait Array: Send {
    fn view(&self) -> Result<View<'_>, ViewError>;

    /// Whether the stream may use it without more ado.
    fn state(&self, stream: &StreamRef<'_>) -> State;

    /// Makes the stream wait for what it must.
    fn acquire<'s>(&'s mut self, stream: StreamRef<'s>) -> Result<Guard<'s>, ViewError>;

    /// The buffer, if the graph owns one.
    fn owned(&self) -> Option<&(dyn Any + 'static)> {
        None
    }

    fn owned_mut(&mut self) -> Option<&mut (dyn Any + 'static)> {
        None
    }

    fn into_owned(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        None
    }
}

/// What must be done before a stream uses an array. The worst of several is their maximum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    /// Nothing: it is settled.
    Settled,
    /// Nothing, as long as the binding orders nothing on this stream.
    Tracked,
    /// It must be acquired.
    Unsettled,
}

/// An array that nodes only read.
pub(super) struct Read<V, T>(pub(super) V, pub(super) PhantomData<fn() -> T>);

/// An array that nodes may write.
pub(super) struct Write<V, T>(pub(super) V, pub(super) PhantomData<fn() -> T>);

/// A buffer that is given back.
pub(super) struct Own<T>(pub(super) Buffer<T>);

impl<T, V: AsDeviceView<T> + Send> Array for Read<V, T> {
    fn view(&self) -> Result<View<'_>, ViewError> {
        self.0.describe()
    }

    fn state(&self, stream: &StreamRef<'_>) -> State {
        // An error is met again where the array is acquired.
        self.0.describe().map_or(State::Unsettled, |view| {
            state(&view, stream, view.may_read_on(stream.raw()))
        })
    }

    fn acquire<'s>(&'s mut self, stream: StreamRef<'s>) -> Result<Guard<'s>, ViewError> {
        self.0.acquire(stream)
    }
}

impl<T, V: AsDeviceViewMut<T> + Send> Array for Write<V, T> {
    fn view(&self) -> Result<View<'_>, ViewError> {
        self.0.describe_mut()
    }

    fn state(&self, stream: &StreamRef<'_>) -> State {
        self.0.describe_mut().map_or(State::Unsettled, |view| {
            state(&view, stream, view.may_write_on(stream.raw()))
        })
    }

    fn acquire<'s>(&'s mut self, stream: StreamRef<'s>) -> Result<Guard<'s>, ViewError> {
        self.0.acquire_mut(stream)
    }
}

impl<T: Send + 'static> Array for Own<T> {
    fn view(&self) -> Result<View<'_>, ViewError> {
        self.0.describe_mut()
    }

    fn state(&self, stream: &StreamRef<'_>) -> State {
        self.0.describe_mut().map_or(State::Unsettled, |view| {
            state(&view, stream, view.may_write_on(stream.raw()))
        })
    }

    fn acquire<'s>(&'s mut self, stream: StreamRef<'s>) -> Result<Guard<'s>, ViewError> {
        self.0.acquire_mut(stream)
    }

    fn owned(&self) -> Option<&(dyn Any + 'static)> {
        Some(&self.0)
    }

    fn owned_mut(&mut self) -> Option<&mut (dyn Any + 'static)> {
        Some(&mut self.0)
    }

    fn into_owned(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.0))
    }
}

/// `settled` is what the view says of the stream.
#[inline(always)]
fn state(view: &View<'_>, stream: &StreamRef<'_>, settled: bool) -> State {
    let here = |context| context == stream.context();
    if settled && matches!(view.place(), Place::Context { context, .. } if here(context)) {
        State::Settled
    } else if view.tracker() == stream.tracker() {
        State::Tracked
    } else {
        State::Unsettled
    }
}

/// Refuses an array that nodes on this context's device could not use as it is.
pub(super) fn check(
    view: &View<'_>,
    context: &CudaContext,
    writes: bool,
    cure: &'static str,
) -> Result<(), ViewError> {
    use gridcall_view::{Layout, ViewErrorKind};
    let device = i32::try_from(context.ordinal()).unwrap_or(i32::MAX);
    let here = match view.place() {
        Place::Context { context: other, .. } => other == context.cu_ctx().cast(),
        Place::Device(other) => other == device,
        Place::Everywhere => true,
        _ => false,
    };
    if !here {
        return Err(ViewError::other(format!(
            "the array is not in the graph's context, of device {device}; copy it there first"
        )));
    }
    if writes && view.is_read_only() {
        return Err(ViewErrorKind::ReadOnly.into());
    }
    if view.is_contiguous() {
        return Ok(());
    }
    Err(match view.layout() {
        Layout::Strided { shape, strides } => ViewErrorKind::NotContiguous {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            cure,
        }
        .into(),
        _ => ViewError::other("the array's layout is not known"),
    })
}

impl<T> Clone for GraphSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GraphSlice<T> {}

impl<T> Clone for GraphSliceMut<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GraphSliceMut<T> {}

impl<T> fmt::Debug for GraphSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.debug("GraphSlice", f)
    }
}

impl<T> fmt::Debug for GraphSliceMut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.debug("GraphSliceMut", f)
    }
}
