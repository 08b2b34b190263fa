//! An array of any Python library as an argument.

use std::{cell::OnceCell, fmt, mem};

use pyo3::{
    Borrowed, Bound, FromPyObject, Py, PyAny, PyErr, PyResult, Python,
    exceptions::{PyTypeError, PyValueError},
    intern,
    types::{PyAnyMethods, PyTypeMethods},
};

use super::{
    capsule, interface,
    library::Library,
    route::{Current, Lent, Route, Way, with_route},
    unread::{Read, Unread, refused},
};
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, Element, ForeignStream, Guard, Order, Place, StreamRef,
    View, ViewError, ViewErrorKind,
    foreign::{Description, Dims, Elements, Owner, Settled, Uses, order_use, release_done},
};

/// A device array of any Python library, extracted as an argument of a `#[pyfunction]`.
///
/// It is passed to a kernel for arrays of any element type, and checked at the launch. An object
/// that is an array and cannot be used (it is in host memory, say) is refused by the launch, which
/// names the kernel and the parameter; one that is no array is refused as an argument.
///
/// ```
/// use gridcall_view::{AsDeviceView, python::PyArray};
/// use pyo3::{prelude::*, types::PyDict};
/// # // Where no driver is loaded, an array without elements serves.
/// # Python::initialize();
/// # Python::attach(|py| -> PyResult<()> {
/// let code = c"
/// class Empty:
///     __cuda_array_interface__ = dict(
///         shape=(0,), typestr='<f4', data=(0, False), version=3)
/// ";
/// let module = PyModule::from_code(py, code, c"empty.py", c"empty")?;
/// let array: PyArray = module.getattr("Empty")?.call0()?.extract()?;
/// assert!(AsDeviceView::<f32>::describe(&array).unwrap().is_empty());
/// let error = AsDeviceView::<f64>::describe(&array).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "expected elements of f64, the array holds float32; convert it to float64 first"
/// );
/// # Ok(())
/// # }).unwrap();
/// ```
pub struct PyArray<'py> {
    object: Bound<'py, PyAny>,
    library: Library,
    /// Or why a kernel cannot take it.
    array: Result<Elements, Box<str>>,
    /// Whether the elements follow one another in row-major order.
    contiguous: bool,
    /// Of a contiguous array, only once somebody asked.
    dims: OnceCell<Box<Dims>>,
    order: Order,
    /// The library's stream, if a launch on it needs nothing but itself.
    settled: Settled,
    /// What must be kept until the device is done, where the library does not see to that.
    kept: Option<Box<Kept>>,
}

/// An owner, and what it must be kept for.
struct Kept {
    owner: Owner,
    uses: Uses,
}

/// What was read of an object.
struct Found {
    array: Elements,
    /// `None` of a contiguous array whose shape can be asked for later.
    dims: Option<(Dims, bool)>,
    order: Order,
    owner: Option<Owner>,
}

impl<'py> FromPyObject<'_, 'py> for PyArray<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        with_route(object, |route| PyArray::read(object, route))
    }
}

impl<'py> PyArray<'py> {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    /// The number of elements; 0 of an array that no kernel can take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.array.as_ref().map_or(0, |array| array.len)
    }

    /// The type of the elements, if a kernel can take the array.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        self.array.as_ref().ok().map(|array| array.dtype)
    }

    /// The number of elements along each dimension.
    ///
    /// # Errors
    ///
    /// If a kernel cannot take the array, or the object does not answer.
    pub fn shape(&self) -> Result<&[usize], ViewError> {
        Ok(self.dims(self.array()?)?.shape())
    }

    /// Where the memory may be used, if a kernel can take the array.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.array.as_ref().ok().map(|array| array.place)
    }

    /// The stream on which the library works on the array, if it told.
    #[must_use]
    pub fn stream(&self) -> Option<ForeignStream> {
        match self.order {
            Order::Stream(stream) => Some(stream),
            Order::Settled => None,
        }
    }

    #[inline]
    fn read(object: Borrowed<'_, 'py, PyAny>, route: &Route) -> PyResult<PyArray<'py>> {
        let library = route.library;
        let mut array = PyArray {
            object: object.to_owned(),
            library,
            array: Err(Box::default()),
            contiguous: true,
            dims: OnceCell::new(),
            order: Order::Settled,
            settled: Settled::default(),
            kept: None,
        };
        match Found::read(object, route) {
            Ok(found) => array.fill(found),
            Err(Unread::Raised(error)) => return Err(error),
            Err(Unread::Refused(error)) => array.array = Err(refusal(&error, library)),
        }
        Ok(array)
    }

    #[inline]
    fn fill(&mut self, found: Found) {
        self.array = Ok(found.array);
        self.order = found.order;
        if let Some((dims, contiguous)) = found.dims {
            self.dims = OnceCell::from(Box::new(dims));
            self.contiguous = contiguous;
        }
        match found.owner {
            None if self.library.frees_in_order() => self.settled = Settled::of(found.order),
            owner => self.keep(owner),
        }
    }

    /// Keeps the owner, or else the object, until the device is done.
    #[cold]
    fn keep(&mut self, owner: Option<Owner>) {
        let object = || Box::new(KeptObject(Some(self.object.clone().unbind())));
        self.kept = Some(Box::new(Kept {
            owner: owner.unwrap_or_else(|| object()),
            uses: Uses::default(),
        }));
    }
}

impl Found {
    #[inline]
    fn read(object: Borrowed<'_, '_, PyAny>, route: &Route) -> Read<Found> {
        let found = match &route.way {
            Way::Exchange(exchange) => Found::lent(exchange.import(object)?),
            Way::Cupy(cupy) => Found::lent(cupy.import(object)?),
            Way::Dlpack(current) => Found::of_capsule(object, route.library, current)?,
            Way::Interface => {
                let name = intern!(object.py(), "__cuda_array_interface__");
                Found::of(interface::import(&object.getattr(name)?)?, None)
            }
            Way::Object => Found::of_object(object, route.library)?,
        };
        if let Some(lazy) = &route.lazy {
            lazy.check(object, found.array.dtype)?;
        }
        Ok(found)
    }

    /// Of a library whose shapes can be asked for again.
    #[inline(always)]
    fn lent((array, dims, order): Lent) -> Found {
        Found {
            array,
            dims,
            order,
            owner: None,
        }
    }

    fn of((array, order): (Description, Order), owner: Option<Owner>) -> Found {
        Found {
            array: array.elements(),
            dims: Some((array.dims, array.contiguous)),
            order,
            owner,
        }
    }

    /// By `__dlpack__`; what it gives owns its share of the memory.
    fn of_capsule(
        object: Borrowed<'_, '_, PyAny>,
        library: Library,
        current: &Current,
    ) -> Read<Found> {
        let py = object.py();
        let current_stream = |device| match current {
            Current::Unknown => Ok(None),
            Current::Cupy(stream) => stream.order(py, device).map(Some),
            Current::Torch(function) => {
                let raw: usize = function.call1(py, (device,))?.extract(py)?;
                // SAFETY: the current stream lives while it is current.
                let stream =
                    unsafe { ForeignStream::from_raw(std::ptr::without_provenance_mut(raw)) };
                Ok(Some(Order::Stream(stream)))
            }
        };
        let (array, order, owner) = capsule::import(object, library, current_stream)?;
        Ok(Found::of((array, order), Some(owner)))
    }

    /// By what the object has and its type has not.
    #[cold]
    fn of_object(object: Borrowed<'_, '_, PyAny>, library: Library) -> Read<Found> {
        let py = object.py();
        if object.hasattr(intern!(py, "__dlpack__"))?
            && object.hasattr(intern!(py, "__dlpack_device__"))?
        {
            return Found::of_capsule(object, library, &Current::Unknown);
        }
        if let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
            return Ok(Found::of(interface::import(&interface)?, None));
        }
        if object.hasattr(intern!(py, "__array_interface__"))? {
            return Err(refused(library.on_the_host()));
        }
        Err(PyTypeError::new_err(format!(
            "'{}' object is not a device array: it has neither __dlpack__ nor __cuda_array_interface__; pass an array of CuPy, PyTorch or any library that has one",
            object.get_type().name()?
        ))
        .into())
    }
}

impl PyArray<'_> {
    #[inline(always)]
    fn array(&self) -> Result<&Elements, ViewError> {
        match &self.array {
            Ok(array) => Ok(array),
            Err(reason) => Err(ViewError::other(String::from(&**reason))),
        }
    }

    fn dims(&self, array: &Elements) -> Result<&Dims, ViewError> {
        if let Some(dims) = self.dims.get() {
            return Ok(dims);
        }
        let object = self.object.as_borrowed();
        let dims = with_route(object, |route| Ok(route.dims(object, array)));
        let dims = match dims.map_err(Unread::Raised).and_then(|dims| dims) {
            Ok(dims) => dims,
            Err(Unread::Raised(error)) => return Err(ViewError::other(error.to_string())),
            Err(Unread::Refused(error)) => return Err(error),
        };
        Ok(self.dims.get_or_init(|| Box::new(dims)))
    }

    #[inline(always)]
    fn view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let array = self.array()?;
        if array.dtype != T::DTYPE {
            return Err(self.library.wrong_type(T::DTYPE, array.dtype));
        }
        let view = if self.contiguous {
            View::new(array.pointer, array.len, array.place)
        } else {
            self.laid_out(array)?
        };
        let view = view.settled_on(self.settled.streams());
        Ok(if array.read_only {
            view.read_only()
        } else {
            view
        })
    }

    fn strided_view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let view = self.view::<T>()?;
        if !self.contiguous {
            return Ok(view);
        }
        let strided = self.laid_out(self.array()?)?;
        let strided = strided.settled_on(self.settled.streams());
        Ok(if view.is_read_only() {
            strided.read_only()
        } else {
            strided
        })
    }

    /// The view with the dimensions.
    fn laid_out(&self, array: &Elements) -> Result<View<'_>, ViewError> {
        let dims = self.dims(array)?;
        Ok(View::known(
            array.pointer,
            array.len,
            dims.shape(),
            dims.strides(),
            self.contiguous,
            array.place,
        ))
    }

    #[inline(always)]
    fn use_on<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        if stream.is_alone() {
            // On the stream on which the array is settled.
            return Ok(Guard::none());
        }
        match (&self.kept, &self.array) {
            (Some(kept), Ok(array)) => kept.uses.acquire(self.order, array.place, stream),
            _ => order_use(self.order, stream),
        }
    }
}

/// A refusal in the library's own words.
#[cold]
fn refusal(error: &ViewError, library: Library) -> Box<str> {
    let text = error.to_string();
    if text.starts_with("the array is in host memory") {
        return library.on_the_host().into();
    }
    text.into()
}

// SAFETY: the object is held, so its memory stays allocated; after the use its library's next work
// on the stream that it told waits for the launch, and where the library may free the memory out of
// that order, what keeps it is let go when the device is done. What the object says of itself is
// believed, as everywhere in Python.
unsafe impl<T: Element> AsDeviceView<T> for PyArray<'_> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.view::<T>()
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }

    fn describe_strided(&self) -> Result<View<'_>, ViewError> {
        self.strided_view::<T>()
    }

    fn make_contiguous(&self) -> &'static str {
        self.library.make_contiguous()
    }
}

// SAFETY: as for reading; the joins order reads and writes alike.
unsafe impl<T: Element> AsDeviceViewMut<T> for PyArray<'_> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.view::<T>()
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }

    fn describe_strided_mut(&self) -> Result<View<'_>, ViewError> {
        self.strided_view::<T>()
    }

    fn make_contiguous_mut(&self) -> &'static str {
        self.library.make_contiguous()
    }
}

impl Drop for PyArray<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.uses.release(self.order, kept.owner);
            // Python's lock is held here, so that any owner may be let go.
            release_done();
        }
    }
}

impl fmt::Debug for PyArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyArray")
            .field("object", &self.object)
            .field("library", &self.library)
            .field("array", &self.array)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

/// An object that is let go on whatever thread.
struct KeptObject(Option<Py<PyAny>>);

impl Drop for KeptObject {
    fn drop(&mut self) {
        let mut object = self.0.take();
        let attached = Python::try_attach(|_| drop(object.take()));
        if attached.is_none() {
            // The interpreter is gone, or going.
            mem::forget(object);
        }
    }
}

impl From<ViewError> for PyErr {
    fn from(error: ViewError) -> PyErr {
        match error.kind() {
            ViewErrorKind::WrongType { .. } => PyTypeError::new_err(error.to_string()),
            ViewErrorKind::Driver { .. } => {
                pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
            }
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}
