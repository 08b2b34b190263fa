//! The launching stream, as an array gets to see it.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    ffi::c_void,
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
};

#[cfg(doc)]
use crate::View;

/// The stream a kernel is launched on: the driver's handles, and, for the adapter of the binding
/// that made it, the binding's own stream object.
#[derive(Clone, Copy)]
pub struct StreamRef<'a> {
    raw: *mut c_void,
    context: *mut c_void,
    device: i32,
    native: Option<(TypeId, NonNull<()>)>,
    tracker: *const c_void,
    alone: bool,
    launch: u64,
    stream: PhantomData<&'a ()>,
}

impl<'a> StreamRef<'a> {
    /// A stream by its `CUstream`, the `CUcontext` it belongs to and that context's device.
    ///
    /// # Safety
    ///
    /// `raw` must be a stream of `context`, `context` a context of `device`, and both must live
    /// for `'a`.
    #[must_use]
    #[inline(always)]
    pub const unsafe fn from_raw(raw: *mut c_void, context: *mut c_void, device: i32) -> Self {
        StreamRef {
            raw,
            context,
            device,
            native: None,
            tracker: ptr::null(),
            alone: false,
            launch: 0,
            stream: PhantomData,
        }
    }

    /// The same stream, with the object of the binding that made it.
    ///
    /// # Safety
    ///
    /// `native` must stand for this very stream.
    #[must_use]
    #[inline(always)]
    pub unsafe fn with_native<S: Any>(mut self, native: &'a S) -> Self {
        self.native = Some((TypeId::of::<S>(), NonNull::from(native).cast()));
        self
    }

    /// The same stream, for which `tracker` says whether uses of arrays are ordered; see
    /// [`View::tracked_by`].
    #[must_use]
    #[inline(always)]
    pub const fn tracked_by(mut self, tracker: *const c_void) -> Self {
        self.tracker = tracker;
        self
    }

    /// The same stream, marked as the only one in use: acquiring an array neither waits nor leaves
    /// anything to record.
    ///
    /// # Safety
    ///
    /// Of every array that is acquired for the stream, the view must be
    /// [settled](View::settled_on) on it, or the stream's tracker must be its own and order
    /// nothing now. As a tracker may begin to order at any time, the caller must look again after
    /// enqueuing its work, and if it does by then, wait for the work before letting go of the
    /// arrays.
    #[must_use]
    #[inline(always)]
    pub const unsafe fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The object that the stream is [tracked by](StreamRef::tracked_by), or null.
    #[must_use]
    #[inline(always)]
    pub const fn tracker(&self) -> *const c_void {
        self.tracker
    }

    /// Whether the stream was marked as the [only one](StreamRef::alone) in use.
    #[must_use]
    #[inline(always)]
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// The same stream, for the arrays of one launch alone: all of them are borrowed before the
    /// first is acquired and until the last is finished, and the launch is enqueued in between.
    ///
    /// What one of the arrays waits for or records need not be waited for or recorded again for
    /// the others.
    #[must_use]
    #[inline(always)]
    pub fn of_one_launch(mut self) -> Self {
        thread_local! {
            static LAUNCHES: Cell<u64> = const { Cell::new(0) };
        }
        self.launch = LAUNCHES.get() + 1;
        LAUNCHES.set(self.launch);
        self
    }

    /// The same reference, copied field by field: for a call off the hot path, so that nothing of
    /// it need be in memory on the path.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    pub fn by_field(&self) -> Self {
        StreamRef {
            raw: self.raw,
            context: self.context,
            device: self.device,
            native: self.native,
            tracker: self.tracker,
            alone: self.alone,
            launch: self.launch,
            stream: PhantomData,
        }
    }

    /// The number of the launch on this thread, from 1, if the reference is
    /// [of one launch](Self::of_one_launch); otherwise 0.
    #[must_use]
    #[inline(always)]
    pub const fn launch(&self) -> u64 {
        self.launch
    }

    /// The driver's `CUstream`.
    #[must_use]
    #[inline(always)]
    pub const fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// The `CUcontext` the stream belongs to. It is current on the calling thread while an array
    /// is acquired and finished.
    #[must_use]
    #[inline(always)]
    pub const fn context(&self) -> *mut c_void {
        self.context
    }

    /// The ordinal of the device.
    #[must_use]
    #[inline(always)]
    pub const fn device(&self) -> i32 {
        self.device
    }

    /// The stream as the binding's own type, if it was made by that binding.
    #[must_use]
    #[inline(always)]
    pub fn native<S: Any>(&self) -> Option<&'a S> {
        match self.native {
            Some((id, native)) if id == TypeId::of::<S>() => {
                // SAFETY: `with_native` stored the type beside a reference to it that lives for 'a.
                Some(unsafe { native.cast().as_ref() })
            }
            _ => None,
        }
    }
}

impl fmt::Debug for StreamRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRef")
            .field("raw", &self.raw)
            .field("context", &self.context)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launch_has_its_own_number() {
        let null = std::ptr::null_mut();
        // SAFETY: the handles are passed to no driver.
        let stream = unsafe { StreamRef::from_raw(null, null, 0) };
        assert_eq!(stream.launch(), 0);
        let (first, second) = (stream.of_one_launch(), stream.of_one_launch());
        assert_ne!(first.launch(), 0);
        assert_ne!(first.launch(), second.launch());
        assert_eq!((first.launch(), stream.launch()), ({ first }.launch(), 0));
    }
}
