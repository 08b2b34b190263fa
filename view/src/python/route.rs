//! How the objects of a type are read: found out at the first of them, and remembered.

use std::{
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};

use pyo3::{
    Borrowed, Bound, Py, PyAny, PyResult, intern,
    types::{PyAnyMethods, PyType, PyTypeMethods},
};

use super::{
    cupy::{Cupy, CurrentStream},
    exchange::Exchange,
    lazy::Lazy,
    library::Library,
    unread::{Read, refused},
};
use crate::{
    ForeignStream,
    foreign::{Dims, Elements},
};

/// The library of a type, and how to read its objects.
pub(super) struct Route {
    pub(super) library: Library,
    pub(super) way: Way,
    /// How PyTorch tells whether a tensor's elements are as they are stored.
    pub(super) lazy: Option<Lazy>,
}

pub(super) enum Way {
    Exchange(Exchange),
    Cupy(Cupy),
    /// With what tells the library's current stream, where that is known.
    Dlpack(Current),
    Interface,
    /// The object itself may have what its type has not.
    Object,
}

/// How a library that speaks DLPack tells its current stream.
pub(super) enum Current {
    Cupy(CurrentStream),
    /// `torch._C._cuda_getCurrentRawStream`.
    Torch(Py<PyAny>),
    Unknown,
}

/// A type, kept for good so that none other gets its address, and its route.
struct Entry {
    ty: usize,
    route: Route,
}

static ENTRIES: [AtomicPtr<Entry>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// The route of an object's type, if it is remembered.
#[inline(always)]
pub(super) fn known(object: Borrowed<'_, '_, PyAny>) -> Option<&'static Route> {
    let ty = object.get_type_ptr().addr();
    for entry in &ENTRIES {
        let entry = entry.load(Ordering::Acquire);
        if entry.is_null() {
            break;
        }
        // SAFETY: entries are made once and never freed.
        let entry: &'static Entry = unsafe { &*entry };
        if entry.ty == ty {
            return Some(&entry.route);
        }
    }
    None
}

/// Calls `read` with the route of an object's type.
#[cold]
pub(super) fn with_route<R>(
    object: Borrowed<'_, '_, PyAny>,
    read: impl FnOnce(&Route) -> PyResult<R>,
) -> PyResult<R> {
    if let Some(route) = known(object) {
        return read(route);
    }
    let ty = object.get_type();
    let route = Route::of(&ty)?;
    match remember(&ty, route) {
        Ok(entry) => read(&entry.route),
        Err(route) => read(&route),
    }
}

#[cold]
fn remember(ty: &Bound<'_, PyType>, route: Route) -> Result<&'static Entry, Box<Route>> {
    static ONE: Mutex<()> = Mutex::new(());
    // Nothing below calls Python, so the lock is held for moments only.
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let address = ty.as_type_ptr().addr();
    for place in &ENTRIES {
        let there = place.load(Ordering::Acquire);
        if there.is_null() {
            let entry = Box::leak(Box::new(Entry { ty: address, route }));
            // Never given back: see `Entry`.
            let _ = ty.clone().into_ptr();
            place.store(entry, Ordering::Release);
            return Ok(entry);
        }
        // SAFETY: entries are made once and never freed.
        let there = unsafe { &*there };
        if there.ty == address {
            return Ok(there);
        }
    }
    Err(Box::new(route))
}

impl Route {
    #[cold]
    fn of(ty: &Bound<'_, PyType>) -> PyResult<Route> {
        let py = ty.py();
        let library = Library::of(ty)?;
        let lazy = match library {
            Library::Torch => Some(Lazy::of(ty)?),
            _ => None,
        };
        let has = |name| ty.hasattr(name);
        let way = if let Some(mut exchange) = Exchange::of(ty)? {
            if let Some(in_object) = lazy.as_ref().and_then(Lazy::in_object) {
                // Whatever is raised here, the exchange API is there.
                let _ = exchange.find_direct(ty, in_object);
            }
            Way::Exchange(exchange)
        } else if library == Library::Cupy
            && let Some(cupy) = Cupy::of(ty)?
        {
            Way::Cupy(cupy)
        } else if has(intern!(py, "__dlpack__"))? && has(intern!(py, "__dlpack_device__"))? {
            Way::Dlpack(match library {
                Library::Cupy => Current::Cupy(CurrentStream::find(py)?),
                Library::Torch => Current::Torch(
                    py.import("torch._C")?
                        .getattr("_cuda_getCurrentRawStream")?
                        .unbind(),
                ),
                _ => Current::Unknown,
            })
        } else if has(intern!(py, "__cuda_array_interface__"))? {
            Way::Interface
        } else {
            Way::Object
        };
        Ok(Route { library, way, lazy })
    }

    /// The array and the stream on which its library works now, if that is all there is to it: a
    /// contiguous array of a library that reuses memory in the order of its streams. If it is not,
    /// an exception of Python's may be set.
    #[inline(always)]
    pub(super) fn plain(
        &self,
        object: Borrowed<'_, '_, PyAny>,
    ) -> Option<(Elements, ForeignStream)> {
        let found = match &self.way {
            Way::Exchange(exchange) => exchange.contiguous(object)?,
            Way::Cupy(cupy) => cupy.contiguous(object)?,
            _ => return None,
        };
        if let Some(lazy) = &self.lazy
            && !lazy.is_stored(object, found.0.dtype)
        {
            return None;
        }
        self.library.frees_in_order().then_some(found)
    }

    /// The dimensions of a plain array, asked for now.
    pub(super) fn dims(
        &self,
        object: Borrowed<'_, '_, PyAny>,
        pointer: u64,
        len: usize,
    ) -> Read<Dims> {
        let now = match &self.way {
            Way::Exchange(exchange) => exchange.import(object)?.0,
            Way::Cupy(cupy) => cupy.import(object)?.0,
            _ => return Err(refused("its library does not tell its shape any more")),
        };
        if !now.contiguous || now.len != len || now.pointer != pointer {
            return Err(refused(
                "it was given other memory or another shape meanwhile",
            ));
        }
        Ok(now.dims)
    }
}
