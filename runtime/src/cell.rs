//! Finds the kernel loaded for a context, without a lock.
//!
//! Each declared kernel has a static list with a node for each context it was loaded in. A node is
//! keyed by the address of cudarc's context object and holds a `Weak` of it: that keeps the
//! address from being used again, and keeps neither the context nor its device busy. The driver's
//! handle would be no key: a primary context that was released and retained again has the same.
//!
//! Nodes are only ever prepended, and rewritten once their context is gone. A reader that looks
//! for a context holds it alive, so it can never match a node that is being rewritten.

use std::{
    cell::UnsafeCell,
    ptr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicPtr, Ordering},
    },
};

use cudarc::driver::{CudaContext, CudaStream};

use crate::{
    declaration::Declaration,
    driver::driver,
    error::{LoadError, LoadErrorKind},
    load::Loaded,
};

/// A declared kernel, and where it is loaded. Made by `#[kernel]`.
#[derive(Debug)]
pub struct KernelCell {
    declaration: &'static Declaration,
    head: AtomicPtr<Node>,
    loading: Mutex<()>,
}

#[derive(Debug)]
struct Node {
    /// Null while the rest is being rewritten.
    key: AtomicPtr<CudaContext>,
    rest: UnsafeCell<Rest>,
    next: *mut Node,
}

#[derive(Debug)]
struct Rest {
    context: Weak<CudaContext>,
    loaded: Arc<Loaded>,
}

// SAFETY: nodes are reached through atomics; `rest` is written only under `loading`, by someone
// who found its context gone and has taken its key away, and read only by those who matched the
// key and hold that context alive.
unsafe impl Sync for KernelCell {}
// SAFETY: what the nodes hold is itself `Send` and `Sync`.
unsafe impl Send for KernelCell {}

impl KernelCell {
    /// A kernel that is loaded nowhere yet.
    #[must_use]
    pub const fn new(declaration: &'static Declaration) -> KernelCell {
        KernelCell {
            declaration,
            head: AtomicPtr::new(ptr::null_mut()),
            loading: Mutex::new(()),
        }
    }

    pub(crate) fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    /// The kernel in the stream's context, loaded at the first call for it.
    #[inline(always)]
    pub(crate) fn find<'a>(&'static self, stream: &'a CudaStream) -> Result<&'a Loaded, LoadError> {
        match self.lookup(stream.context()) {
            Some(loaded) => Ok(loaded),
            None => self.load_for(stream),
        }
    }

    /// The kernel in this context, to be kept.
    pub(crate) fn get(&'static self, context: &Arc<CudaContext>) -> Result<Arc<Loaded>, LoadError> {
        match self.lookup(context) {
            Some(loaded) => Ok(loaded.clone()),
            None => self.load(context).cloned(),
        }
    }

    #[inline(always)]
    fn lookup<'a>(&'static self, context: &'a Arc<CudaContext>) -> Option<&'a Arc<Loaded>> {
        let key = Arc::as_ptr(context).cast_mut();
        let mut node = self.head.load(Ordering::Acquire);
        // SAFETY: nodes are never freed, and each was written before it was published.
        while let Some(here) = unsafe { node.as_ref() } {
            if here.key.load(Ordering::Acquire) == key {
                // SAFETY: the key was published after `rest`. It matches a context that the
                // caller keeps alive for 'a, so nobody rewrites `rest` meanwhile: that is done
                // only once the context is gone, and no other object can have its address.
                return Some(unsafe { &(*here.rest.get()).loaded });
            }
            node = here.next;
        }
        None
    }

    #[cold]
    fn load_for<'a>(&'static self, stream: &'a CudaStream) -> Result<&'a Loaded, LoadError> {
        let mut capturing = 0;
        // SAFETY: the stream is borrowed, and `capturing` takes the answer.
        let code =
            unsafe { (driver()?.stream_is_capturing)(stream.cu_stream(), &raw mut capturing) };
        if code.result().is_ok() && capturing != 0 {
            return Err(LoadErrorKind::Capturing {
                kernel: self.declaration.kernel,
            }
            .into());
        }
        self.load(stream.context()).map(|loaded| &**loaded)
    }

    #[cold]
    fn load<'a>(
        &'static self,
        context: &'a Arc<CudaContext>,
    ) -> Result<&'a Arc<Loaded>, LoadError> {
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = self.lookup(context) {
            return Ok(loaded);
        }
        let loaded = Arc::new(Loaded::load(self.declaration, context)?);
        let rest = Rest {
            context: Arc::downgrade(context),
            loaded,
        };
        let node = match self.dead_node() {
            Some(node) => {
                // SAFETY: its context is gone and its key taken away, so nobody reads `rest`;
                // `loading` is held, so nobody else writes it.
                unsafe { *node.rest.get() = rest };
                node
            }
            None => {
                let node = Box::leak(Box::new(Node {
                    key: AtomicPtr::new(ptr::null_mut()),
                    rest: UnsafeCell::new(rest),
                    next: self.head.load(Ordering::Relaxed),
                }));
                self.head.store(node, Ordering::Release);
                node
            }
        };
        node.key
            .store(Arc::as_ptr(context).cast_mut(), Ordering::Release);
        // SAFETY: as in `lookup`: the caller keeps the context alive for 'a.
        Ok(unsafe { &(*node.rest.get()).loaded })
    }

    /// A node whose context is gone, its key taken away. To be called with `loading` held.
    fn dead_node(&'static self) -> Option<&'static Node> {
        let mut node = self.head.load(Ordering::Acquire);
        // SAFETY: nodes are never freed, and each was written before it was published.
        while let Some(here) = unsafe { node.as_ref() } {
            // SAFETY: only holders of `loading` write `rest`, and that is us.
            if unsafe { (*here.rest.get()).context.strong_count() } == 0 {
                here.key.store(ptr::null_mut(), Ordering::Release);
                return Some(here);
            }
            node = here.next;
        }
        None
    }
}
