//! Device memory by its address, vouched for by the caller.

use std::{fmt, marker::PhantomData};

use crate::{AsDeviceView, AsDeviceViewMut, Guard, Place, StreamRef, View, ViewError};

/// Elements that somebody else owns, lent for reading by their address.
///
/// ```
/// use gridcall_view::{AsDeviceView, BorrowedView, Place};
/// # let address = 0x7000;
/// // SAFETY: 16 floats live at `address` on device 0, and all their users share one stream.
/// let x: BorrowedView<'_, f32> = unsafe { BorrowedView::new(address, 16, Place::Device(0)) };
/// assert_eq!(x.describe()?.len(), 16);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct BorrowedView<'a, T> {
    view: View<'a>,
    elements: PhantomData<&'a [T]>,
}

/// Elements that somebody else owns, lent for writing by their address.
///
/// ```
/// use gridcall_view::{AsDeviceViewMut, BorrowedViewMut, Place};
/// # let address = 0x7000;
/// // SAFETY: 16 floats live at `address` on device 0, and all their users share one stream.
/// let y: BorrowedViewMut<'_, f32> = unsafe { BorrowedViewMut::new(address, 16, Place::Device(0)) };
/// assert_eq!(y.describe_mut()?.pointer(), address);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct BorrowedViewMut<'a, T> {
    view: View<'a>,
    elements: PhantomData<&'a mut [T]>,
}

impl<T> BorrowedView<'_, T> {
    /// `len` elements from the device address `pointer` on.
    ///
    /// # Safety
    ///
    /// For `'a`, the memory must be allocated in `place` and hold `len` values of `T`; and on
    /// every stream that this view is used on, uses must be ordered after the writes before them
    /// and before the next write and the free. The view orders nothing itself.
    #[must_use]
    pub const unsafe fn new(pointer: u64, len: usize, place: Place) -> Self {
        BorrowedView {
            view: View::new(pointer, len, place),
            elements: PhantomData,
        }
    }
}

impl<T> BorrowedViewMut<'_, T> {
    /// `len` elements from the device address `pointer` on.
    ///
    /// # Safety
    ///
    /// As for [`BorrowedView::new`]; and on every stream that this view is used on, uses must be
    /// ordered after all uses before them and before the next use of any kind. For `'a` nobody
    /// else may use the memory.
    #[must_use]
    pub const unsafe fn new(pointer: u64, len: usize, place: Place) -> Self {
        BorrowedViewMut {
            view: View::new(pointer, len, place),
            elements: PhantomData,
        }
    }
}

// SAFETY: all that the trait asks is what the caller of `new` vouched for.
unsafe impl<T> AsDeviceView<T> for BorrowedView<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.view)
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: all that the trait asks is what the caller of `new` vouched for.
unsafe impl<T> AsDeviceView<T> for BorrowedViewMut<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(self.view)
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: all that the trait asks is what the caller of `new` vouched for.
unsafe impl<T> AsDeviceViewMut<T> for BorrowedViewMut<'_, T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(self.view)
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, _stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: an address may be sent anywhere; who uses it when is what the caller of `new` vouched
// for, on whatever thread.
unsafe impl<T> Send for BorrowedView<'_, T> {}
// SAFETY: as for `Send`; a shared view only lends its plain data.
unsafe impl<T> Sync for BorrowedView<'_, T> {}
// SAFETY: an address may be sent anywhere; who uses it when is what the caller of `new` vouched
// for, on whatever thread.
unsafe impl<T> Send for BorrowedViewMut<'_, T> {}
// SAFETY: as for `Send`; a shared view only lends its plain data.
unsafe impl<T> Sync for BorrowedViewMut<'_, T> {}

impl<T> Clone for BorrowedView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BorrowedView<'_, T> {}

impl<T> fmt::Debug for BorrowedView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BorrowedView").field(&self.view).finish()
    }
}

impl<T> fmt::Debug for BorrowedViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BorrowedViewMut").field(&self.view).finish()
    }
}
