//! An array of any Python library as an argument.

use std::{cell::OnceCell, fmt, mem};

use pyo3::{
    Borrowed, Bound, FromPyObject, Py, PyAny, PyErr, PyResult, Python,
    exceptions::{PyTypeError, PyValueError},
    intern,
    types::{PyAnyMethods, PyTypeMethods},
};

use super::{
    capsule, cupy, interface,
    library::Library,
    route::{Current, Lazy, Route, Way, with_route},
    unread::{Read, Unread, refused},
};
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, Element, ForeignStream, Guard, Order, Place, StreamRef,
    View, ViewError, ViewErrorKind,
    foreign::{Description, Dims, Owner, Uses, release_done},
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
    array: Result<Description, Box<str>>,
    /// Whether of the dimensions nothing is known but that they are contiguous.
    flat: bool,
    /// Those dimensions, once somebody asked.
    dims: OnceCell<Dims>,
    order: Order,
    uses: Uses,
    /// What must be kept until the device is done, where the library does not see to that.
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
            flat: false,
            dims: OnceCell::new(),
            order: Order::Settled,
            uses: Uses::default(),
            owner: None,
        };
        array.array = match array.fill(object, route) {
            Ok(description) => Ok(description),
            Err(Unread::Raised(error)) => return Err(error),
            Err(Unread::Refused(error)) => Err(refusal(&error, library)),
        };
        if array.owner.is_none() && !library.frees_in_order() {
            array.owner = Some(Box::new(KeptObject(Some(object.to_owned().unbind()))));
        }
        Ok(array)
    }

    #[inline]
    fn fill(&mut self, object: Borrowed<'_, 'py, PyAny>, route: &Route) -> Read<Description> {
        let array;
        match &route.way {
            Way::Exchange(exchange) => (array, self.order) = exchange.import(object)?,
            Way::Cupy(cupy) => (array, self.order, self.flat) = cupy.import(object)?,
            Way::Dlpack(current) => array = self.fill_from_capsule(object, current)?,
            Way::Interface => {
                let name = intern!(object.py(), "__cuda_array_interface__");
                (array, self.order) = interface::import(&object.getattr(name)?)?;
            }
            Way::Object => array = self.fill_from_object(object)?,
        }
        if let Some(lazy) = &route.lazy {
            check_lazy(object, lazy, &array)?;
        }
        Ok(array)
    }

    /// By `__dlpack__`; what it gives owns its share of the memory.
    fn fill_from_capsule(
        &mut self,
        object: Borrowed<'_, 'py, PyAny>,
        current: &Current,
    ) -> Read<Description> {
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
        let (array, order, owner) = capsule::import(object, self.library, current_stream)?;
        self.order = order;
        self.owner = Some(owner);
        Ok(array)
    }

    /// By what the object has and its type has not.
    #[cold]
    fn fill_from_object(&mut self, object: Borrowed<'_, 'py, PyAny>) -> Read<Description> {
        let py = object.py();
        if object.hasattr(intern!(py, "__dlpack__"))?
            && object.hasattr(intern!(py, "__dlpack_device__"))?
        {
            return self.fill_from_capsule(object, &Current::Unknown);
        }
        if let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
            let (array, order) = interface::import(&interface)?;
            self.order = order;
            return Ok(array);
        }
        if object.hasattr(intern!(py, "__array_interface__"))? {
            return Err(refused(self.library.on_the_host()));
        }
        Err(PyTypeError::new_err(format!(
            "'{}' object is not a device array: it has neither __dlpack__ nor __cuda_array_interface__; pass an array of CuPy, PyTorch or any library that has one",
            object.get_type().name()?
        ))
        .into())
    }

    #[inline(always)]
    fn array(&self) -> Result<&Description, ViewError> {
        match &self.array {
            Ok(array) => Ok(array),
            Err(reason) => Err(ViewError::other(String::from(&**reason))),
        }
    }

    fn dims<'a>(&'a self, array: &'a Description) -> Result<&'a Dims, ViewError> {
        if !self.flat {
            return Ok(&array.dims);
        }
        if let Some(dims) = self.dims.get() {
            return Ok(dims);
        }
        let object = self.object.as_borrowed();
        let dims = cupy::dims(object, array.dtype.size()).map_err(|error| match error {
            Unread::Raised(error) => ViewError::other(error.to_string()),
            Unread::Refused(error) => error,
        })?;
        Ok(self.dims.get_or_init(|| dims))
    }

    #[inline(always)]
    fn view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let array = self.array()?;
        if self.flat && array.dtype == T::DTYPE {
            return Ok(View::new(array.pointer, array.len, array.place));
        }
        array.view_of::<T>(|expected, found| self.library.wrong_type(expected, found))
    }

    fn strided_view<T: Element>(&self) -> Result<View<'_>, ViewError> {
        let flat = self.view::<T>()?;
        if !self.flat {
            return Ok(flat);
        }
        let dims = self.dims(self.array()?)?;
        View::strided(flat.pointer(), dims.shape(), dims.strides(), flat.place())
            .ok_or_else(|| ViewError::other("its shape and strides contradict each other"))
    }
}

/// Refuses a tensor whose elements are not as they are stored.
#[inline]
fn check_lazy(object: Borrowed<'_, '_, PyAny>, lazy: &Lazy, array: &Description) -> Read<()> {
    let py = object.py();
    let complex = matches!(array.dtype, DType::Complex64 | DType::Complex128);
    if lazy.is_neg.bind(py).call1((object,))?.is_truthy()? {
        return Err(refused(
            "the tensor is negated lazily: its memory holds the elements with the other sign; pass `.resolve_neg()`",
        ));
    }
    if complex && lazy.is_conj.bind(py).call1((object,))?.is_truthy()? {
        return Err(refused(
            "the tensor is conjugated lazily: its memory holds the elements as they were before; pass `.resolve_conj()`",
        ));
    }
    Ok(())
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
        self.uses.acquire(self.order, stream)
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
        self.uses.acquire(self.order, stream)
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
        if let Some(owner) = self.owner.take() {
            self.uses.release(self.order, owner);
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
