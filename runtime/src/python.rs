//! Launching from functions that are exported to Python.
//!
//! [`PyArray`] is an argument of such a function, whatever library its array is of, and of a kernel:
//!
//! ```no_run
//! use gridcall::{cover, kernel, python::{PyArray, stream_of}};
//! use pyo3::PyResult;
//!
//! #[kernel(ptx = "../kernels/vector.ptx")]
//! unsafe extern "C" {
//!     #[requires(x.len() >= n, y.len() >= n)]
//!     safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
//! }
//!
//! // With #[pyfunction].
//! fn axpy(a: f32, x: PyArray<'_>, mut y: PyArray<'_>) -> PyResult<()> {
//!     let stream = stream_of(&y)?;
//!     let n = u32::try_from(y.size())?;
//!     saxpy(&stream, cover(n), n, a, &x, &mut y)?;
//!     Ok(())
//! }
//! ```
//!
//! What such a function computes it may also return, as a [`PyTensor`], which other libraries take as
//! it is:
//!
//! ```no_run
//! # use gridcall::{cover, kernel, python::stream_of};
//! use gridcall::{Buffer, python::{PyArray, PyTensor}};
//! # use pyo3::PyResult;
//! # #[kernel(ptx = "../kernels/vector.ptx")]
//! # unsafe extern "C" {
//! #     #[requires(input.len() >= n, out.len() >= n)]
//! #     safe fn copy(input: &[f32], out: &mut [f32], n: i32);
//! # }
//!
//! fn copied(x: PyArray<'_>) -> PyResult<PyTensor> {
//!     let stream = stream_of(&x)?;
//!     let n = i32::try_from(x.size())?;
//!     // A `Buffer` is in order on streams of other libraries, too.
//!     let mut out = Buffer::zeroed(&stream.context().default_stream(), x.size())?;
//!     copy(&stream, cover(n), &x, &mut out, n)?;
//!     Ok(PyTensor::new(out.into_tensor(x.shape()?)?)?)
//! }
//! ```
//!
//! An error of a launch becomes an exception: `TypeError` for another element type, `ValueError` for
//! arguments that do not fit, a shape or attributes that are not possible, `RuntimeError` for what the
//! driver refuses.

use std::{cell::RefCell, ffi::c_void, marker::PhantomData, ops::Deref, ptr, rc::Rc, sync::Arc};

use cudarc::driver::{CudaStream, sys};
use gridcall_view::{ForeignStream, Place, ViewErrorKind};
use pyo3::{
    PyErr,
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
};

pub use gridcall_view::python::{PyArray, PyStream, PyTensor};

use crate::{
    ArgumentError, BufferError, LaunchError, LaunchErrorKind, LaunchShape, LoadError,
    LoadErrorKind, Safe,
    call::{launch_replayed, loaded},
    device,
    graph::Replayed,
    kernel::{Arguments, Declared},
    load::Loaded,
};

/// A stream of a Python library, to launch on. The library owns it.
#[derive(Debug)]
pub struct LaunchStream<'py> {
    /// Shared within the thread, which counts faster.
    wrapped: Rc<Wrapped>,
    library: PhantomData<&'py ()>,
}

/// A handle on a device, and the stream that was made of it.
#[derive(Debug)]
struct Wrapped {
    handle: *mut c_void,
    ordinal: i32,
    /// The graphs of kernels that were launched by [`LaunchStream::replay`], by the address at which
    /// each is loaded for as long as the stream's context lives.
    graphs: RefCell<Vec<(usize, Replayed)>>,
    stream: Arc<CudaStream>,
}

impl LaunchStream<'_> {
    /// Launches a safe kernel as a graph of one node, which takes the host half to three quarters of the time: see
    /// [`Replay`](crate::Replay). Each thread has one for each kernel and stream.
    ///
    /// ```no_run
    /// use gridcall::{cover, kernel, python::{PyArray, stream_of}};
    /// use pyo3::PyResult;
    ///
    /// #[kernel(ptx = "../kernels/vector.ptx")]
    /// unsafe extern "C" {
    ///     #[requires(x.len() >= n, y.len() >= n)]
    ///     safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
    /// }
    ///
    /// // With #[pyfunction].
    /// fn axpy(a: f32, x: PyArray<'_>, mut y: PyArray<'_>) -> PyResult<()> {
    ///     let n = u32::try_from(y.size())?;
    ///     stream_of(&y)?.replay(cover(n), saxpy { n, a, x: &x, y: &mut y })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`](crate::Kernel::launch); if the launch asks for attributes that a node
    /// cannot have, or the driver is older than CUDA 12.3. In all these cases nothing was launched.
    #[inline]
    pub fn replay<'e, A>(
        &self,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError>
    where
        A: Arguments<Declared: Declared<Safety = Safe>>,
    {
        let stream = &self.wrapped.stream;
        let kernel = loaded::<A>(stream)?;
        // Taken out, since an argument may run code of Python's that launches the kernel, too.
        let graph = self.wrapped.take(kernel)?;
        let launched = launch_replayed(kernel, stream, launch.into(), &graph.1, arguments);
        self.wrapped.graphs.borrow_mut().push(graph);
        launched
    }
}

impl Wrapped {
    #[inline]
    fn take(&self, kernel: &Loaded) -> Result<(usize, Replayed), LaunchError> {
        let key = ptr::from_ref(kernel).addr();
        let mut graphs = self.graphs.borrow_mut();
        match graphs.iter().rposition(|(of, _)| *of == key) {
            Some(index) => Ok(graphs.swap_remove(index)),
            None => match Replayed::new(self.stream.context()) {
                Ok(graph) => Ok((key, graph)),
                Err(error) => Err(LaunchError::of_load(kernel.declaration.kernel, error)),
            },
        }
    }
}

impl Deref for LaunchStream<'_> {
    type Target = CudaStream;

    #[inline]
    fn deref(&self) -> &CudaStream {
        &self.wrapped.stream
    }
}

/// The stream on which an array's library works now: on it a launch with that library's arrays
/// waits for nothing and nothing waits for it. Of a library that told no stream, the legacy
/// default stream.
///
/// # Errors
///
/// If the array's device cannot be opened.
pub fn stream_of<'py>(array: &PyArray<'py>) -> Result<LaunchStream<'py>, LoadError> {
    let ordinal = match array.place() {
        Some(Place::Device(device) | Place::Context { device, .. }) => device,
        // An array that no kernel can take is refused by the launch, which says why.
        _ => 0,
    };
    let stream = array.stream().unwrap_or(ForeignStream::LEGACY_DEFAULT);
    borrow(stream, ordinal)
}

/// A stream object of a Python library, on the device of `ordinal`.
///
/// # Errors
///
/// If the device cannot be opened, or the stream is of another one.
pub fn launch_stream<'py>(
    stream: &PyStream<'py>,
    ordinal: usize,
) -> Result<LaunchStream<'py>, LoadError> {
    let context = device(ordinal)?;
    let raw = stream.stream().raw();
    // The legacy and the per-thread stream are of whatever context is current.
    if raw.addr() > 2 {
        let mut found = std::ptr::null_mut();
        // SAFETY: the object keeps the stream; `found` takes the answer.
        let code = unsafe { sys::cuStreamGetCtx(raw.cast(), &raw mut found) };
        if code.result().is_err() || found != context.cu_ctx() {
            return Err(LoadErrorKind::OtherStream { ordinal }.into());
        }
    }
    let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
    borrow(stream.stream(), ordinal)
}

thread_local! {
    /// The streams of this thread's last launches. A handle that was used again for another
    /// stream makes no difference: cudarc keeps nothing but the handle.
    static LAST: RefCell<Vec<Rc<Wrapped>>> = const { RefCell::new(Vec::new()) };
}

#[inline]
fn borrow<'py>(stream: ForeignStream, ordinal: i32) -> Result<LaunchStream<'py>, LoadError> {
    let handle = stream.raw();
    let known = LAST.with_borrow(|last| {
        last.iter()
            .find(|known| known.handle == handle && known.ordinal == ordinal)
            .cloned()
    });
    let wrapped = match known {
        Some(known) => known,
        None => wrap(handle, ordinal)?,
    };
    Ok(LaunchStream {
        wrapped,
        library: PhantomData,
    })
}

#[cold]
fn wrap(handle: *mut c_void, ordinal: i32) -> Result<Rc<Wrapped>, LoadError> {
    /// More than PyTorch has for one device and priority; their graphs would be built anew.
    const KEPT: usize = 64;
    let context = device(usize::try_from(ordinal).unwrap_or(usize::MAX))?;
    // SAFETY: the stream is of the device's primary context, in which Python's libraries work, and
    // lives while its library works on it or its object is held.
    let stream = unsafe { context.wrap_borrowed_stream(handle.cast()) };
    let wrapped = Rc::new(Wrapped {
        handle,
        ordinal,
        graphs: RefCell::default(),
        stream,
    });
    LAST.with_borrow_mut(|last| {
        if last.len() == KEPT {
            last.remove(0);
        }
        last.push(wrapped.clone());
    });
    Ok(wrapped)
}

impl From<LoadError> for PyErr {
    #[cold]
    fn from(error: LoadError) -> PyErr {
        PyRuntimeError::new_err(error.to_string())
    }
}

impl From<BufferError> for PyErr {
    #[cold]
    fn from(error: BufferError) -> PyErr {
        PyRuntimeError::new_err(error.to_string())
    }
}

impl From<LaunchError> for PyErr {
    #[cold]
    fn from(error: LaunchError) -> PyErr {
        let text = error.to_string();
        match Exception::of(error.kind()) {
            Exception::Type => PyTypeError::new_err(text),
            Exception::Value => PyValueError::new_err(text),
            Exception::Runtime => PyRuntimeError::new_err(text),
        }
    }
}

/// The kinds of exception that a launch raises.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exception {
    Type,
    Value,
    Runtime,
}

impl Exception {
    fn of(kind: &LaunchErrorKind) -> Exception {
        match kind {
            LaunchErrorKind::Argument {
                error: ArgumentError::View(view),
                ..
            } if matches!(view.kind(), ViewErrorKind::WrongType { .. }) => Exception::Type,
            LaunchErrorKind::Argument { .. }
            | LaunchErrorKind::Requirement { .. }
            | LaunchErrorKind::Attribute(_)
            | LaunchErrorKind::Geometry(_) => Exception::Value,
            _ => Exception::Runtime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttributeError, Axis, GeometryError, driver::DriverCode};

    #[test]
    fn what_the_caller_asked_for_is_a_value_error() {
        for (kind, exception) in [
            (AttributeError::NeverWaits.into(), Exception::Value),
            (AttributeError::NoCluster.into(), Exception::Value),
            (
                LaunchErrorKind::Geometry(GeometryError::ZeroGrid { axis: Axis::X }),
                Exception::Value,
            ),
            (LaunchErrorKind::Broken(DriverCode(700)), Exception::Runtime),
        ] {
            assert_eq!(Exception::of(&kind), exception, "{kind}");
        }
    }
}
