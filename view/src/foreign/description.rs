//! What is known of an array of another library, once its own words have been read and checked.

use super::Dims;
use crate::{DType, Element, Place, View, ViewError};

/// The elements of an array that follow one another in row-major order. How many dimensions they
/// have is not told.
#[cfg(feature = "pyo3")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) pointer: u64,
    pub(crate) len: usize,
    pub(crate) device: Device,
    pub(crate) dtype: DType,
}

/// A device by its ordinal, or all of them.
#[cfg(feature = "pyo3")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device(i32);

#[cfg(feature = "pyo3")]
impl Device {
    #[inline(always)]
    pub(crate) fn of(place: Place) -> Device {
        match place {
            Place::Device(ordinal)
            | Place::Context {
                device: ordinal, ..
            } => Device(ordinal),
            Place::Everywhere => Device(i32::MIN),
        }
    }

    #[inline(always)]
    pub(crate) fn place(self) -> Place {
        match self.0 {
            i32::MIN => Place::Everywhere,
            ordinal => Place::Device(ordinal),
        }
    }
}

#[cfg(feature = "pyo3")]
impl Elements {
    /// The elements, if their addresses are numbers.
    #[inline(always)]
    pub(crate) fn new(pointer: u64, len: usize, dtype: DType, place: Place) -> Option<Elements> {
        let bytes = len.checked_mul(dtype.size())? as u64;
        if len > 0 && (pointer == 0 || pointer.checked_add(bytes).is_none()) {
            return None;
        }
        Some(Elements {
            pointer,
            len,
            device: Device::of(place),
            dtype,
        })
    }
}

/// An array that has been looked at: where it is, of what, and how it lies.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) pointer: u64,
    pub(crate) len: usize,
    pub(crate) dtype: DType,
    pub(crate) dims: Dims,
    pub(crate) contiguous: bool,
    pub(crate) place: Place,
    pub(crate) read_only: bool,
}

impl Description {
    /// Checks that the array is one: that its length and its addresses are numbers.
    #[inline]
    pub(crate) fn new(
        pointer: u64,
        dtype: DType,
        dims: Dims,
        place: Place,
        read_only: bool,
    ) -> Result<Description, ViewError> {
        let Some(len) = dims.len() else {
            return Err(too_large(&dims));
        };
        if len > 0 {
            let size = dtype.size() as i128;
            let Some((below, above)) = dims.reach() else {
                return Err(too_large(&dims));
            };
            if pointer == 0 {
                return Err(ViewError::other(format!(
                    "the array has {len} elements and a null pointer; it is not allocated, or has been freed"
                )));
            }
            let first = i128::from(pointer) + below as i128 * size;
            let end = i128::from(pointer) + (above as i128 + 1) * size;
            if first < 0 || end > i128::from(u64::MAX) {
                return Err(too_large(&dims));
            }
        }
        let contiguous = View::strided(pointer, dims.shape(), dims.strides(), place)
            .is_some_and(|view| view.is_contiguous());
        Ok(Description {
            pointer,
            len,
            dtype,
            dims,
            contiguous,
            place,
            read_only,
        })
    }

    /// The view of elements that are known to be of the asked type.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        let view = View::known(
            self.pointer,
            self.len,
            self.dims.shape(),
            self.dims.strides(),
            self.contiguous,
            self.place,
        );
        if self.read_only {
            view.read_only()
        } else {
            view
        }
    }

    /// The view for a kernel that takes elements of `T`; `cure` says what to do if they are others.
    #[inline(always)]
    pub(crate) fn view_of<T: Element>(
        &self,
        refuse: impl FnOnce(DType, DType) -> ViewError,
    ) -> Result<View<'_>, ViewError> {
        if self.dtype == T::DTYPE {
            Ok(self.view())
        } else {
            Err(refuse(T::DTYPE, self.dtype))
        }
    }
}

#[cold]
fn too_large(dims: &Dims) -> ViewError {
    ViewError::other(format!(
        "its owner says that it has shape {:?} and strides {:?}, which reach beyond all addresses",
        dims.shape(),
        dims.strides()
    ))
}
