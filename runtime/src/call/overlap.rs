//! Which arrays of a launch overlap that may not.

use gridcall_view::View;

use super::refusal::argument;
use crate::{
    error::{ArgumentError, LaunchError},
    load::Loaded,
};

/// An array that has been described and checked: contiguous elements at an address.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pointer: u64,
    len: usize,
    /// The size of an element in bytes; 0 for an array that was left out.
    element: usize,
    pub(super) exclusive: bool,
}

impl Span {
    /// What stands for an array that was left out: the null pointer, and no elements.
    pub(super) const ABSENT: Span = Span {
        pointer: 0,
        len: 0,
        element: 0,
        exclusive: true,
    };

    /// Room for `len` elements from this address on, of an array that is seen so.
    #[inline(always)]
    pub(super) fn new<T>(pointer: u64, len: usize, view: &View<'_>) -> Span {
        Span {
            pointer,
            len,
            element: size_of::<T>(),
            exclusive: view.is_exclusive(),
        }
    }

    #[inline(always)]
    pub(crate) fn pointer(&self) -> u64 {
        self.pointer
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn is_absent(&self) -> bool {
        self.element == 0
    }

    #[inline(always)]
    fn overlaps(&self, other: &Span) -> bool {
        self.pointer < other.end() && other.pointer < self.end() && self.len > 0 && other.len > 0
    }

    /// The same, of an array that is there, and so does not reach beyond all addresses.
    #[inline(always)]
    pub(super) fn end_of_memory(&self) -> u64 {
        self.pointer
            .wrapping_add(self.len.wrapping_mul(self.element) as u64)
    }

    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        let bytes = self.len.saturating_mul(self.element) as u64;
        self.pointer.saturating_add(bytes)
    }
}

/// Whether any two arrays overlap of which one is written.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "who is written is known to the compiler, who would make memory of the arrays for a lazy operator"
)]
#[inline(always)]
pub(super) fn any_overlap(arrays: &[(usize, Span, bool)]) -> bool {
    arrays
        .iter()
        .enumerate()
        .any(|(position, (_, one, written))| {
            let others = &arrays[..position];
            others
                .iter()
                .any(|(_, other, other_written)| (*written | *other_written) && one.overlaps(other))
        })
}

/// The same out of line: the written arrays, which are few, are compared with the others.
#[inline(never)]
pub(super) fn any_overlap_of_many(arrays: &[(usize, Span, bool)]) -> bool {
    let written = arrays.iter().filter(|(_, _, written)| *written);
    written.into_iter().any(|(index, one, _)| {
        arrays
            .iter()
            .any(|(other_index, other, _)| one.overlaps(other) && other_index != index)
    })
}

/// Tells which arrays overlap that may not, where some do.
#[cold]
#[inline(never)]
pub(super) fn check_disjoint(
    kernel: &Loaded,
    arrays: &[(usize, Span, bool)],
) -> Result<(), LaunchError> {
    let may_alias = kernel.declaration.may_alias;
    for (position, &(index, array, written)) in arrays.iter().enumerate() {
        for &(other_index, other, other_written) in &arrays[..position] {
            if (written || other_written)
                && !(array.exclusive && other.exclusive)
                && array.overlaps(&other)
                && !may_alias.contains(&(other_index, index))
            {
                let other = kernel.declaration.params[other_index].name;
                let reason = ArgumentError::Overlap { other, other_index };
                return Err(argument(kernel, index, reason));
            }
        }
    }
    Ok(())
}
