//! Parts of a buffer, borrowed.

use std::{
    any::type_name,
    fmt,
    marker::PhantomData,
    ops::{Bound, Range, RangeBounds},
};

use bytemuck::AnyBitPattern;

use super::{memory::Memory, order::Access};
use crate::error::{BufferError, BufferErrorKind};

/// Some of a buffer's elements, for reading.
pub struct BufferSlice<'a, T> {
    part: Part<'a>,
    elements: PhantomData<&'a [T]>,
}

/// Some of a buffer's elements, for writing.
pub struct BufferSliceMut<'a, T> {
    part: Part<'a>,
    elements: PhantomData<&'a mut [T]>,
}

/// Where elements are in an allocation.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) memory: &'a Memory,
    /// The first byte.
    start: usize,
    /// The number of elements.
    pub(super) len: usize,
    /// Whether other parts may be written meanwhile.
    split: bool,
}

impl Part<'_> {
    #[inline(always)]
    pub(super) fn pointer(&self) -> u64 {
        self.memory.pointer() + self.start as u64
    }

    /// The bytes of elements of type `T`.
    #[inline(always)]
    pub(super) fn bytes<T>(&self) -> Range<usize> {
        self.start..self.start + self.len * size_of::<T>()
    }

    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.split
    }

    pub(super) fn access<T>(&self, writes: bool) -> Access {
        Access {
            range: self.bytes::<T>(),
            writes,
            split: self.split,
        }
    }

    fn slice<T>(self, range: impl RangeBounds<usize>) -> Result<Self, BufferError> {
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
            start: self.start + start * size_of::<T>(),
            len: end - start,
            ..self
        })
    }

    fn cast<T, U>(self) -> Result<Self, BufferError> {
        const { assert!(size_of::<U>() > 0, "the device has no types without a size") };
        let bytes = self.len * size_of::<T>();
        let aligned = 1 << self.pointer().trailing_zeros().min(63);
        if !bytes.is_multiple_of(size_of::<U>()) || aligned < align_of::<U>() as u64 {
            return Err(BufferErrorKind::Cast {
                bytes,
                aligned,
                ty: type_name::<U>(),
                size: size_of::<U>(),
                align: align_of::<U>(),
            }
            .into());
        }
        Ok(Part {
            len: bytes / size_of::<U>(),
            ..self
        })
    }
}

impl<'a, T> BufferSlice<'a, T> {
    pub(super) fn all(memory: &'a Memory, len: usize) -> Self {
        BufferSlice::of(Part {
            memory,
            start: 0,
            len,
            split: false,
        })
    }

    fn of(part: Part<'a>) -> Self {
        BufferSlice {
            part,
            elements: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn part(&self) -> &Part<'a> {
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
        self.part.slice::<T>(range).map(BufferSlice::of)
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// If they are no whole number of elements, or not aligned for them.
    pub fn cast<U: AnyBitPattern>(&self) -> Result<BufferSlice<'a, U>, BufferError> {
        self.part.cast::<T, U>().map(BufferSlice::of)
    }
}

impl<'a, T> BufferSliceMut<'a, T> {
    pub(super) fn all(memory: &'a mut Memory, len: usize) -> Self {
        BufferSliceMut::of(Part {
            memory,
            start: 0,
            len,
            split: false,
        })
    }

    fn of(part: Part<'a>) -> Self {
        BufferSliceMut {
            part,
            elements: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn part(&self) -> &Part<'a> {
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
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice::of(self.part)
    }

    /// The same elements, for a shorter time.
    #[must_use]
    pub fn reborrow(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut::of(self.part)
    }

    /// Some of the elements.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn slice_mut(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> Result<BufferSliceMut<'_, T>, BufferError> {
        self.reborrow().into_slice(range)
    }

    /// Some of the elements, for as long as these.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end.
    pub fn into_slice(self, range: impl RangeBounds<usize>) -> Result<Self, BufferError> {
        self.part.slice::<T>(range).map(BufferSliceMut::of)
    }

    /// The elements before `middle` and those from there on.
    ///
    /// # Errors
    ///
    /// If `middle` is beyond the end.
    pub fn split_at_mut(
        &mut self,
        middle: usize,
    ) -> Result<(BufferSliceMut<'_, T>, BufferSliceMut<'_, T>), BufferError> {
        self.reborrow().into_split_at(middle)
    }

    /// The elements before `middle` and those from there on, each for as long as these.
    ///
    /// # Errors
    ///
    /// If `middle` is beyond the end.
    pub fn into_split_at(self, middle: usize) -> Result<(Self, Self), BufferError> {
        let part = self.part;
        let (head, tail) = (part.slice::<T>(..middle)?, part.slice::<T>(middle..)?);
        if !part.split {
            // These are all the elements that anyone may use now.
            part.memory.split();
        }
        let split = |part| {
            BufferSliceMut::of(Part {
                split: true,
                ..part
            })
        };
        Ok((split(head), split(tail)))
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// If they are no whole number of elements, or not aligned for them.
    pub fn cast_mut<U: AnyBitPattern>(&mut self) -> Result<BufferSliceMut<'_, U>, BufferError>
    where
        T: AnyBitPattern,
    {
        self.part.cast::<T, U>().map(BufferSliceMut::of)
    }
}

impl<T> Clone for BufferSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BufferSlice<'_, T> {}

impl<T> fmt::Debug for BufferSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("BufferSlice", &self.part, f)
    }
}

impl<T> fmt::Debug for BufferSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("BufferSliceMut", &self.part, f)
    }
}

fn debug(name: &str, part: &Part<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("pointer", &format_args!("{:#x}", part.pointer()))
        .field("len", &part.len)
        .finish_non_exhaustive()
}
