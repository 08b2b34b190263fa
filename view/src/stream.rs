//! The launching stream, as an array gets to see it.

use std::{
    any::{Any, TypeId},
    ffi::c_void,
    fmt,
    marker::PhantomData,
    ptr::NonNull,
};

/// The stream a kernel is launched on: the driver's handles, and, for the adapter of the binding
/// that made it, the binding's own stream object.
#[derive(Clone, Copy)]
pub struct StreamRef<'a> {
    raw: *mut c_void,
    context: *mut c_void,
    device: i32,
    native: Option<(TypeId, NonNull<()>)>,
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
