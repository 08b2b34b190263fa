//! A shape for an array that has none.

use crate::{AsDeviceView, AsDeviceViewMut, Guard, Layout, StreamRef, View, ViewError};

/// An array with a shape and strides of its own, for kernels that take it in its dimensions.
///
/// Wraps a reference to any contiguous array, `&x` or `&mut y`. That all elements lie in the array
/// is checked at the call.
///
/// ```
/// use gridcall_view::{AsDeviceView, BorrowedView, Place, Shaped};
/// # // SAFETY: nothing uses the address.
/// # let array: BorrowedView<'_, f32> = unsafe { BorrowedView::new(0x7000, 6, Place::Device(0)) };
/// let matrix = Shaped::new(&array, [2, 3]);
/// assert!(matrix.describe()?.is_contiguous());
/// let transposed = Shaped::strided(&array, 0, [3, 2], [1, 3]);
/// assert!(!transposed.describe()?.is_contiguous());
/// // The last row first.
/// let flipped = Shaped::strided(&array, 3, [2, 3], [-3, 1]);
/// assert_eq!(flipped.describe()?.pointer(), 0x700c);
/// assert!(Shaped::strided(&array, 0, [2, 3], [4, 1]).describe().is_err());
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shaped<V, const N: usize> {
    array: V,
    offset: usize,
    shape: [usize; N],
    strides: [isize; N],
}

impl<V, const N: usize> Shaped<V, N> {
    /// The elements of `array` from the first on, in row-major order.
    #[must_use]
    pub const fn new(array: V, shape: [usize; N]) -> Shaped<V, N> {
        let mut strides = [1_isize; N];
        let mut dimension = N;
        while dimension > 1 {
            dimension -= 1;
            // Where this wraps, the array is shorter than the shape, which the call finds.
            let extent = if shape[dimension] > isize::MAX as usize {
                isize::MAX
            } else {
                shape[dimension].cast_signed()
            };
            strides[dimension - 1] = strides[dimension].saturating_mul(extent);
        }
        Shaped::strided(array, 0, shape, strides)
    }

    /// The elements of `array` at `offset`, and from there on by `strides`, in elements.
    #[must_use]
    pub const fn strided(
        array: V,
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Shaped<V, N> {
        Shaped {
            array,
            offset,
            shape,
            strides,
        }
    }

    /// The array.
    pub fn into_inner(self) -> V {
        self.array
    }

    fn shape<'a>(&'a self, view: &View<'a>, size: usize) -> Result<View<'a>, ViewError> {
        let whole = match view.layout() {
            Layout::Contiguous => true,
            Layout::Strided { .. } => view.is_contiguous(),
        };
        if !whole {
            return Err(ViewError::other(
                "an array that is not contiguous cannot be given another shape; make it contiguous first",
            ));
        }
        let outside = || {
            ViewError::other(format!(
                "the array has {} elements, and shape {:?} with strides {:?} from element {} on reaches beyond them",
                view.len(),
                self.shape,
                self.strides,
                self.offset
            ))
        };
        let mut bytes = 0;
        if !self.shape.contains(&0) {
            let reach = self.reach().ok_or_else(outside)?;
            if reach.0 < 0 || reach.1 >= view.len() as i128 {
                return Err(outside());
            }
            bytes = self.offset as u64 * size as u64;
        }
        let shaped = View::strided(
            view.pointer() + bytes,
            &self.shape,
            &self.strides,
            view.place(),
        );
        let mut shaped = shaped.ok_or_else(outside)?.tracked_by(view.tracker());
        if view.is_exclusive() {
            shaped = shaped.exclusive();
        }
        if view.is_read_only() {
            shaped = shaped.read_only();
        }
        Ok(shaped)
    }

    /// The first and the last element that the indices reach.
    fn reach(&self) -> Option<(i128, i128)> {
        let (mut first, mut last) = (self.offset as i128, self.offset as i128);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let end = (extent as i128 - 1).checked_mul(stride as i128)?;
            if end < 0 {
                first = first.checked_add(end)?;
            } else {
                last = last.checked_add(end)?;
            }
        }
        Some((first, last))
    }
}

// SAFETY: the elements are the array's own, which is asked for everything else.
unsafe impl<T, V: AsDeviceView<T>, const N: usize> AsDeviceView<T> for Shaped<V, N> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.shape(&self.array.describe()?, size_of::<T>())
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire(stream)
    }
}

// SAFETY: the elements are the array's own, which is asked for everything else.
unsafe impl<T, V: AsDeviceViewMut<T>, const N: usize> AsDeviceViewMut<T> for Shaped<V, N> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.shape(&self.array.describe_mut()?, size_of::<T>())
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire_mut(stream)
    }
}
