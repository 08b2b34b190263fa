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
    route::{Current, Route, Way, known, with_route},
    unread::{Read, Unread, refused},
};
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, Element, ForeignStream, Guard, Order, Place, StreamRef,
    View, ViewError, ViewErrorKind,
    foreign::{Description, Device, Dims, Elements, Owner, Settled, Uses, order_use, release_done},
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
    /// Of an array that no kernel can take, no elements.
    elements: Elements,
    library: Library,
    /// The library's stream, if a launch on it needs nothing but itself.
    settled: Settled,
    /// Whatever else there is to the array. Mostly nothing: see [`Route::plain`].
    rest: Option<Box<Rest>>,
    /// The dimensions, if there is nothing else, once somebody asked.
    dims: OnceCell<Box<Dims>>,
}

struct Rest {
    /// Or why a kernel cannot take it.
    array: Result<Description, Box<str>>,
    order: Order,
    /// What must be kept until the device is done, where the library does not see to that.
    kept: Option<Kept>,
}

/// An owner, and what it must be kept for.
struct Kept {
    owner: Owner,
    uses: Uses,
}

impl<'py> FromPyObject<'_, 'py> for PyArray<'py> {
    type Error = PyErr;

    // Inlined with all that it calls, so that what is read is written to its place at once.
    #[inline(always)]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Some(route) = known(object) else {
            return PyArray::first(object);
        };
        if let Some((elements, stream)) = route.plain(object) {
            return Ok(PyArray::plain(object, route, elements, stream));
        }
        PyArray::read(object, route)
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
    #[inline]
    pub fn size(&self) -> usize {
        self.elements.len
    }

    /// The type of the elements, if a kernel can take the array.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        self.is_usable().then_some(self.elements.dtype)
    }

    /// The number of elements along each dimension.
    ///
    /// # Errors
    ///
    /// If a kernel cannot take the array, or the object does not answer.
    pub fn shape(&self) -> Result<&[usize], ViewError> {
        Ok(self.dims()?.shape())
    }

    /// Where the memory may be used, if a kernel can take the array.
    #[must_use]
    #[inline]
    pub fn place(&self) -> Option<Place> {
        self.is_usable().then(|| self.elements.device.place())
    }

    /// The stream on which the library works on the array, if it told.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> Option<ForeignStream> {
        match self.order() {
            Order::Stream(stream) => Some(stream),
            Order::Settled => None,
        }
    }

    #[inline(always)]
    fn is_usable(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.array.is_ok())
    }

    #[inline(always)]
    fn order(&self) -> Order {
        match &self.rest {
            Some(rest) => rest.order,
            None => Order::Stream(self.settled.stream()),
        }
    }

    #[inline(always)]
    fn plain(
        object: Borrowed<'_, 'py, PyAny>,
        route: &Route,
        elements: Elements,
        stream: ForeignStream,
    ) -> PyArray<'py> {
        PyArray {
            object: object.to_owned(),
            elements,
            library: route.library,
            settled: Settled::on(stream),
            rest: None,
            dims: OnceCell::new(),
        }
    }

    /// Reads an array of a type that is not remembered.
    #[cold]
    fn first(object: Borrowed<'_, 'py, PyAny>) -> PyResult<PyArray<'py>> {
        with_route(object, |route| match route.plain(object) {
            Some((elements, stream)) => Ok(PyArray::plain(object, route, elements, stream)),
            None => PyArray::read(object, route),
        })
    }

    /// Reads all that there is to an array.
    #[cold]
    fn read(object: Borrowed<'_, 'py, PyAny>, route: &Route) -> PyResult<PyArray<'py>> {
        // What kept the array from being plain is found again.
        drop(PyErr::take(object.py()));
        let library = route.library;
        let mut rest = Rest {
            array: Err(Box::default()),
            order: Order::Settled,
            kept: None,
        };
        rest.array = match rest.fill(object, route) {
            Ok(array) => Ok(array),
            Err(Unread::Raised(error)) => return Err(error),
            Err(Unread::Refused(error)) => Err(refusal(&error, library)),
        };
        let settled = match rest.order {
            Order::Stream(stream) if library.frees_in_order() && rest.kept.is_none() => {
                Settled::on(stream)
            }
            _ => Settled::default(),
        };
        if rest.kept.is_none() && !library.frees_in_order() {
            rest.keep(Box::new(KeptObject(Some(object.to_owned().unbind()))));
        }
        let elements = match &rest.array {
            Ok(array) => Elements {
                pointer: array.pointer,
                len: array.len,
                device: Device::of(array.place),
                dtype: array.dtype,
            },
            Err(_) => Elements {
                pointer: 0,
                len: 0,
                device: Device::of(Place::Everywhere),
                dtype: DType::U8,
            },
        };
        Ok(PyArray {
            object: object.to_owned(),
            elements,
            library,
            settled,
            rest: Some(Box::new(rest)),
            dims: OnceCell::new(),
        })
    }

    fn dims(&self) -> Result<&Dims, ViewError> {
        if let Some(rest) = &self.rest {
            return Ok(&rest.array()?.dims);
        }
        if let Some(dims) = self.dims.get() {
            return Ok(dims);
        }
        let (object, Elements { pointer, len, .. }) = (self.object.as_borrowed(), self.elements);
        let read = with_route(object, |route| Ok(route.dims(object, pointer, len)));
        let dims = match read.map_err(Unread::Raised).and_then(|read| read) {
            Ok(dims) => dims,
            Err(Unread::Raised(error)) => return Err(ViewError::other(error.to_string())),
            Err(Unread::Refused(error)) => return Err(error),
        };
        Ok(self.dims.get_or_init(|| Box::new(dims)))
    }

    #[inline(always)]
    fn view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let view = match &self.rest {
            Some(rest) => rest.array()?.view(),
            None => {
                let Elements {
                    pointer,
                    len,
                    device,
                    ..
                } = self.elements;
                View::new(pointer, len, device.place())
            }
        };
        if self.elements.dtype != T::DTYPE {
            return Err(self.library.wrong_type(T::DTYPE, self.elements.dtype));
        }
        Ok(view.settled_on(self.settled.streams()))
    }

    fn strided_view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let view = self.view::<T>()?;
        if self.rest.is_some() {
            return Ok(view);
        }
        let dims = self.dims()?;
        let (shape, strides) = (dims.shape(), dims.strides());
        let laid_out = View::known(
            view.pointer(),
            view.len(),
            shape,
            strides,
            true,
            view.place(),
        );
        Ok(laid_out.settled_on(self.settled.streams()))
    }

    #[inline(always)]
    fn use_on<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        if stream.is_alone() {
            // On the stream on which the array is settled.
            return Ok(Guard::none());
        }
        self.join(stream)
    }

    #[inline(never)]
    fn join<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        match &self.rest {
            Some(rest) => match &rest.kept {
                Some(kept) => {
                    let place = self.elements.device.place();
                    kept.uses.acquire(rest.order, place, stream)
                }
                None => order_use(rest.order, stream),
            },
            None => order_use(self.order(), stream),
        }
    }
}

impl Rest {
    fn fill(&mut self, object: Borrowed<'_, '_, PyAny>, route: &Route) -> Read<Description> {
        let (array, stream);
        match &route.way {
            Way::Exchange(exchange) => {
                (array, stream) = exchange.import(object)?;
                self.order = Order::Stream(stream);
            }
            Way::Cupy(cupy) => {
                (array, stream) = cupy.import(object)?;
                self.order = Order::Stream(stream);
            }
            Way::Dlpack(current) => {
                array = self.fill_from_capsule(object, route.library, current)?;
            }
            Way::Interface => {
                let name = intern!(object.py(), "__cuda_array_interface__");
                (array, self.order) = interface::import(&object.getattr(name)?)?;
            }
            Way::Object => array = self.fill_from_object(object, route.library)?,
        }
        if let Some(lazy) = &route.lazy {
            lazy.check(object, array.dtype)?;
        }
        Ok(array)
    }

    /// By `__dlpack__`; what it gives owns its share of the memory.
    fn fill_from_capsule(
        &mut self,
        object: Borrowed<'_, '_, PyAny>,
        library: Library,
        current: &Current,
    ) -> Read<Description> {
        let py = object.py();
        let current_stream = |device| match current {
            Current::Unknown => Ok(None),
            Current::Cupy(stream) => stream.stream(py, device).map(|s| Some(Order::Stream(s))),
            Current::Torch(function) => {
                let raw: usize = function.call1(py, (device,))?.extract(py)?;
                // SAFETY: the current stream lives while it is current.
                let stream =
                    unsafe { ForeignStream::from_raw(std::ptr::without_provenance_mut(raw)) };
                Ok(Some(Order::Stream(stream)))
            }
        };
        let (array, order, owner) = capsule::import(object, library, current_stream)?;
        self.order = order;
        self.keep(owner);
        Ok(array)
    }

    /// By what the object has and its type has not.
    fn fill_from_object(
        &mut self,
        object: Borrowed<'_, '_, PyAny>,
        library: Library,
    ) -> Read<Description> {
        let py = object.py();
        if object.hasattr(intern!(py, "__dlpack__"))?
            && object.hasattr(intern!(py, "__dlpack_device__"))?
        {
            return self.fill_from_capsule(object, library, &Current::Unknown);
        }
        if let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
            let (array, order) = interface::import(&interface)?;
            self.order = order;
            return Ok(array);
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

    fn keep(&mut self, owner: Owner) {
        self.kept = Some(Kept {
            owner,
            uses: Uses::default(),
        });
    }

    #[cold]
    fn let_go(self) {
        if let Some(kept) = self.kept {
            kept.uses.release(self.order, kept.owner);
            // Python's lock is held here, so that any owner may be let go.
            release_done();
        }
    }

    fn array(&self) -> Result<&Description, ViewError> {
        match &self.array {
            Ok(array) => Ok(array),
            Err(reason) => Err(ViewError::other(String::from(&**reason))),
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
        if let Some(rest) = self.rest.take() {
            rest.let_go();
        }
    }
}

impl fmt::Debug for PyArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyArray")
            .field("object", &self.object)
            .field("library", &self.library)
            .field("elements", &self.elements)
            .field("order", &self.order())
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
