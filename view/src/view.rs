//! What an array says of itself: pointer, length, layout and place.

use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::Acquire},
};

#[cfg(doc)]
use crate::StreamRef;

/// A device array as a launch sees it. Plain data: it keeps nothing alive.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pointer: u64,
    len: usize,
    layout: Layout<'a>,
    place: Place,
    tracker: *const c_void,
    settled: &'a [AtomicUsize],
    contiguous: bool,
    read_only: bool,
    exclusive: bool,
}

/// How the elements of a [`View`] lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout<'a> {
    /// One after another, without gaps.
    Contiguous,
    /// In `shape.len()` dimensions; `strides` are in elements, may be zero or negative, and lead
    /// from the view's pointer.
    Strided {
        /// The number of elements along each dimension.
        shape: &'a [usize],
        /// The distance, in elements, between neighbours along each dimension.
        strides: &'a [isize],
    },
}

/// Where the memory of a [`View`] may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In one context: the driver's `CUcontext`, and the ordinal of its device.
    Context {
        /// The `CUcontext`.
        context: *mut c_void,
        /// The ordinal of the context's device.
        device: i32,
    },
    /// In any context of the device with this ordinal.
    Device(i32),
    /// On every device: managed memory, and host memory that is pinned and mapped.
    Everywhere,
}

// SAFETY: a handle of the driver, whose functions may be called from any thread; nothing here
// looks behind it.
unsafe impl Send for Place {}
// SAFETY: as for `Send`.
unsafe impl Sync for Place {}

impl<'a> View<'a> {
    /// `len` contiguous elements from the device address `pointer` on.
    ///
    /// ```
    /// use gridcall_view::{Place, View};
    /// let view = View::new(0x7000, 12, Place::Device(0));
    /// assert_eq!((view.pointer(), view.len()), (0x7000, 12));
    /// assert!(view.is_contiguous());
    /// ```
    #[must_use]
    #[inline(always)]
    pub const fn new(pointer: u64, len: usize, place: Place) -> View<'a> {
        View {
            pointer,
            len,
            layout: Layout::Contiguous,
            place,
            tracker: ptr::null(),
            settled: &[],
            contiguous: true,
            read_only: false,
            exclusive: false,
        }
    }

    /// Elements in dimensions. `pointer` is the address of the element at index 0 of each.
    ///
    /// `None` if `shape` and `strides` have different lengths, or the number of elements
    /// overflows.
    ///
    /// ```
    /// use gridcall_view::{Place, View};
    /// let transposed = View::strided(0x7000, &[3, 2], &[1, 3], Place::Device(0)).unwrap();
    /// assert_eq!(transposed.len(), 6);
    /// assert!(!transposed.is_contiguous());
    /// // Strides of dimensions of length 1 mean nothing.
    /// assert!(View::strided(0x7000, &[1, 4], &[99, 1], Place::Device(0)).unwrap().is_contiguous());
    /// ```
    #[must_use]
    pub fn strided(
        pointer: u64,
        shape: &'a [usize],
        strides: &'a [isize],
        place: Place,
    ) -> Option<View<'a>> {
        if shape.len() != strides.len() {
            return None;
        }
        let len = if shape.contains(&0) {
            0
        } else {
            shape
                .iter()
                .try_fold(1_usize, |len, &n| len.checked_mul(n))?
        };
        let contiguous = len == 0 || row_major(shape, strides);
        Some(View::known(pointer, len, shape, strides, contiguous, place))
    }

    /// Elements in dimensions whose length, and whether they follow one another, is known.
    #[inline(always)]
    pub(crate) const fn known(
        pointer: u64,
        len: usize,
        shape: &'a [usize],
        strides: &'a [isize],
        contiguous: bool,
        place: Place,
    ) -> View<'a> {
        View {
            pointer,
            len,
            layout: Layout::Strided { shape, strides },
            place,
            tracker: ptr::null(),
            settled: &[],
            contiguous,
            read_only: false,
            exclusive: false,
        }
    }

    /// The same view, marked as not to be written: a launch that writes it is refused.
    #[must_use]
    #[inline(always)]
    pub const fn read_only(mut self) -> View<'a> {
        self.read_only = true;
        self
    }

    /// The same view, marked as guarded by Rust's borrow rules: no other safe view can overlap
    /// one that is written. Overlap is looked for between all others.
    #[must_use]
    #[inline(always)]
    pub const fn exclusive(mut self) -> View<'a> {
        self.exclusive = true;
        self
    }

    /// The same view, of an array that some streams, by their `CUstream`s in the context that the
    /// view names or in the primary one of the device that it names, may use without more ado: the
    /// first may read and write, the others read.
    /// Acquiring the array for one of them neither waits nor leaves anything to record, as long as
    /// the view lives, and need not be done. Between the streams may stand what is no handle of
    /// any.
    ///
    /// ```
    /// use gridcall_view::{Place, View};
    /// use std::sync::atomic::AtomicUsize;
    /// # let [writer, reader, other] = [16, 32, 48].map(|stream| stream as *mut _);
    /// let streams = [16, 32, usize::MAX].map(AtomicUsize::new);
    /// let view = View::new(0x7000, 12, Place::Device(0)).settled_on(&streams);
    /// assert!(view.may_read_on(writer) && view.may_write_on(writer));
    /// assert!(view.may_read_on(reader) && !view.may_write_on(reader));
    /// assert!(!view.may_read_on(other));
    /// ```
    #[must_use]
    #[inline(always)]
    pub const fn settled_on(mut self, streams: &'a [AtomicUsize]) -> View<'a> {
        self.settled = streams;
        self
    }

    /// Whether the array is [settled](View::settled_on) for reading on this stream.
    #[must_use]
    #[inline(always)]
    pub fn may_read_on(&self, stream: *mut c_void) -> bool {
        match self.settled {
            [] => false,
            [_] => self.may_write_on(stream),
            [_, readers @ ..] => self.may_write_on(stream) || is_among(readers, stream.addr()),
        }
    }

    /// Whether the array is [settled](View::settled_on) for writing on this stream.
    #[must_use]
    #[inline(always)]
    pub fn may_write_on(&self, stream: *mut c_void) -> bool {
        match self.settled {
            [] => false,
            [writer, ..] => writer.load(Acquire) == stream.addr(),
        }
    }

    /// The same view, of an array whose binding orders its uses only while `tracker` says so: the
    /// address of an object of the binding, equal to that of the streams the object speaks for.
    ///
    /// A launch on such a stream then acquires the array without ordering anything; see
    /// [`StreamRef::alone`].
    #[must_use]
    #[inline(always)]
    pub const fn tracked_by(mut self, tracker: *const c_void) -> View<'a> {
        self.tracker = tracker;
        self
    }

    /// The device address of the first element (of index 0 in each dimension).
    #[must_use]
    #[inline(always)]
    pub const fn pointer(&self) -> u64 {
        self.pointer
    }

    /// The number of elements.
    #[must_use]
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How the elements lie in memory.
    #[must_use]
    #[inline(always)]
    pub const fn layout(&self) -> Layout<'a> {
        self.layout
    }

    /// Where the memory may be used.
    #[must_use]
    #[inline(always)]
    pub const fn place(&self) -> Place {
        self.place
    }

    /// The object that the array is [tracked by](View::tracked_by), or null.
    #[must_use]
    #[inline(always)]
    pub const fn tracker(&self) -> *const c_void {
        self.tracker
    }

    /// Whether the view was marked [`read_only`](View::read_only).
    #[must_use]
    #[inline(always)]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the view was marked [`exclusive`](View::exclusive).
    #[must_use]
    #[inline(always)]
    pub const fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Whether the elements follow one another without gaps, in row-major order.
    ///
    /// Strides of dimensions of length 1 do not count, and an empty view is contiguous.
    #[must_use]
    #[inline(always)]
    pub const fn is_contiguous(&self) -> bool {
        self.contiguous
    }
}

fn row_major(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1_isize;
    shape.iter().zip(strides).rev().all(|(&n, &stride)| {
        let fits = n == 1 || stride == expected;
        // The product of all lengths fits a usize; where it exceeds an isize, no stride equals it.
        expected = expected.saturating_mul(isize::try_from(n).unwrap_or(isize::MAX));
        fits
    })
}

#[inline(never)]
fn is_among(streams: &[AtomicUsize], stream: usize) -> bool {
    streams.iter().any(|handle| handle.load(Acquire) == stream)
}
