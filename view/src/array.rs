//! The two traits an array implements, and what they mean for pointers to arrays.

use std::{rc::Rc, sync::Arc};

use crate::{Guard, StreamRef, View, ViewError, tracking::Tracking};

/// A device array that a kernel may read as elements of type `T`.
///
/// `T` is a parameter, not an associated type: an array whose element type is known only at run
/// time implements the trait for every [`Element`](crate::Element) and answers with
/// [`ViewError::wrong_type`] where they differ, while a statically typed one implements it for its
/// own element type and does not compile for another. The trait can be used as
/// `dyn AsDeviceView<T>`.
///
/// # Safety
///
/// An implementation promises, of a view that [`describe`](Self::describe) returned:
///
/// - from its pointer on, as many elements as its layout spans are allocated memory of the place
///   it names, hold valid values of `T` in stream order, and stay allocated at least until `self`
///   is dropped or mutated;
/// - `describe` keeps answering the same until `self` is mutated;
/// - after [`acquire`](Self::acquire), work enqueued on that stream runs after all writes that
///   were enqueued before, by anyone;
/// - once the guard has [finished](Guard::finish), no one writes to the memory or frees it before
///   the work enqueued on that stream until then is done;
/// - if the view is marked [exclusive](View::exclusive), Rust's borrow rules on `self` keep all
///   other safe access away.
///
/// The third and the fourth are not asked of an array whose view is [tracked](View::tracked_by),
/// on a stream that [is alone](StreamRef::is_alone): who marked the stream answers for them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a device array of `{T}`",
    label = "expected a device array of `{T}`",
    note = "a kernel takes device arrays as they are: cudarc's `CudaSlice<{T}>` and its views, or any type that implements `AsDeviceView<{T}>`, which a struct around an array can derive",
    note = "host memory (`Vec`, arrays, slices) must be copied to the device first, e.g. with `stream.clone_htod(&v)?`; elements are never converted"
)]
pub unsafe trait AsDeviceView<T> {
    /// Says where the array is and how it is laid out. Calls no driver function.
    ///
    /// # Errors
    ///
    /// If the array cannot be seen as elements of `T`.
    fn describe(&self) -> Result<View<'_>, ViewError>;

    /// Makes `stream` wait for whatever must be done before the array is read on it.
    ///
    /// # Errors
    ///
    /// If the driver refuses; nothing may be launched then.
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError>;

    /// As [`describe`](Self::describe), for a kernel that takes the array in its dimensions: what
    /// answers there that its elements are contiguous may have to look up their shape here.
    ///
    /// # Errors
    ///
    /// As [`describe`](Self::describe).
    #[inline(always)]
    fn describe_strided(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    /// As [`describe`](Self::describe), for a launch on a stream of this tracker.
    #[doc(hidden)]
    #[inline(always)]
    fn describe_tracked(&self, _tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    /// What makes such an array contiguous, in the words of its library.
    fn make_contiguous(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

const MAKE_CONTIGUOUS: &str = "make it contiguous first";

/// A device array that a kernel may write as elements of type `T`.
///
/// What can only be read implements [`AsDeviceView`] alone.
///
/// # Safety
///
/// As for [`AsDeviceView`]; and after [`acquire_mut`](Self::acquire_mut), work enqueued on the
/// stream runs after all reads *and* writes enqueued before, and once the guard has finished,
/// nobody reads, writes or frees the memory before that work is done.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a writable device array of `{T}`",
    label = "expected a writable device array of `{T}`",
    note = "the kernel writes to this argument: pass `&mut` to cudarc's `CudaSlice<{T}>` or `CudaViewMut<{T}>`, or to any type that implements `AsDeviceViewMut<{T}>`, which a struct around an array can derive",
    note = "host memory (`Vec`, arrays, slices) must be copied to the device first, e.g. with `stream.clone_htod(&v)?`; elements are never converted"
)]
pub unsafe trait AsDeviceViewMut<T> {
    /// Says where the array is and how it is laid out. Calls no driver function.
    ///
    /// # Errors
    ///
    /// If the array cannot be seen as elements of `T`, or not be written.
    fn describe_mut(&self) -> Result<View<'_>, ViewError>;

    /// Makes `stream` wait for whatever must be done before the array is written on it.
    ///
    /// # Errors
    ///
    /// If the driver refuses; nothing may be launched then.
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError>;

    /// As [`describe_mut`](Self::describe_mut), for a kernel that takes the array in its
    /// dimensions.
    ///
    /// # Errors
    ///
    /// As [`describe_mut`](Self::describe_mut).
    #[inline(always)]
    fn describe_strided_mut(&self) -> Result<View<'_>, ViewError> {
        self.describe_mut()
    }

    /// As [`describe_mut`](Self::describe_mut), for a launch on a stream of this tracker.
    #[doc(hidden)]
    #[inline(always)]
    fn describe_mut_tracked(&self, _tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        self.describe_mut()
    }

    /// What makes such an array contiguous, in the words of its library.
    fn make_contiguous_mut(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

/// All that [`AsDeviceView`] asks, by what `self` points to.
macro_rules! forward {
    () => {
        #[inline(always)]
        fn describe(&self) -> Result<View<'_>, ViewError> {
            (**self).describe()
        }

        #[inline(always)]
        fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
            (**self).acquire(stream)
        }

        #[inline(always)]
        fn describe_strided(&self) -> Result<View<'_>, ViewError> {
            (**self).describe_strided()
        }

        #[inline(always)]
        fn describe_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
            (**self).describe_tracked(tracking)
        }

        fn make_contiguous(&self) -> &'static str {
            (**self).make_contiguous()
        }
    };
}

/// As `forward`, for [`AsDeviceViewMut`].
macro_rules! forward_mut {
    () => {
        #[inline(always)]
        fn describe_mut(&self) -> Result<View<'_>, ViewError> {
            (**self).describe_mut()
        }

        #[inline(always)]
        fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
            (**self).acquire_mut(stream)
        }

        #[inline(always)]
        fn describe_strided_mut(&self) -> Result<View<'_>, ViewError> {
            (**self).describe_strided_mut()
        }

        #[inline(always)]
        fn describe_mut_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
            (**self).describe_mut_tracked(tracking)
        }

        fn make_contiguous_mut(&self) -> &'static str {
            (**self).make_contiguous_mut()
        }
    };
}

// SAFETY: forwards to `V`, which is borrowed and so neither dropped nor mutated meanwhile.
unsafe impl<T, V: AsDeviceView<T> + ?Sized> AsDeviceView<T> for &V {
    forward!();
}

// SAFETY: forwards to `V`, which is borrowed and so neither dropped nor mutated meanwhile.
unsafe impl<T, V: AsDeviceView<T> + ?Sized> AsDeviceView<T> for &mut V {
    forward!();
}

// SAFETY: forwards to `V`, which the box owns.
unsafe impl<T, V: AsDeviceView<T> + ?Sized> AsDeviceView<T> for Box<V> {
    forward!();
}

// SAFETY: forwards to `V`, which the shared pointer keeps alive and lends only for reading.
unsafe impl<T, V: AsDeviceView<T> + ?Sized> AsDeviceView<T> for Arc<V> {
    forward!();
}

// SAFETY: forwards to `V`, which the shared pointer keeps alive and lends only for reading.
unsafe impl<T, V: AsDeviceView<T> + ?Sized> AsDeviceView<T> for Rc<V> {
    forward!();
}

// SAFETY: forwards to `V`, which is exclusively borrowed.
unsafe impl<T, V: AsDeviceViewMut<T> + ?Sized> AsDeviceViewMut<T> for &mut V {
    forward_mut!();
}

// SAFETY: forwards to `V`, which the box owns.
unsafe impl<T, V: AsDeviceViewMut<T> + ?Sized> AsDeviceViewMut<T> for Box<V> {
    forward_mut!();
}
