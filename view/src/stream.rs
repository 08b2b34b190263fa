//! The launching stream, as an array gets to see it.

use std::{
    any::{Any, TypeId},
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
    /// The stream's tracker must order nothing now, and it must be the tracker of every array that
    /// is acquired for the stream. As it may begin to order at any time, the caller must look
    /// again after enqueuing its work, and if it does by then, wait for the work before letting go
    /// of the arrays.
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
