//! [`__cuda_array_interface__`](https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html),
//! versions 2 and 3.

use pyo3::{
    Bound, PyAny, PyErr,
    exceptions::PyKeyError,
    types::{PyAnyMethods, PyDict, PyDictMethods, PyTuple},
};

use super::{
    cupy::of_bytes,
    element,
    unread::{Read, refused},
};
use crate::{
    Order, Place,
    foreign::{Description, place_of},
};

/// The array that an interface describes.
pub(super) fn import(interface: &Bound<'_, PyAny>) -> Read<(Description, Order)> {
    let interface = interface.cast::<PyDict>()?;
    let needed = |key: &str| {
        interface.get_item(key)?.ok_or_else(|| {
            PyKeyError::new_err(format!("its __cuda_array_interface__ has no `{key}`"))
        })
    };
    let optional = |key: &str| Ok::<_, PyErr>(interface.get_item(key)?.filter(|v| !v.is_none()));
    let version: i64 = needed("version")?.extract()?;
    if !(2..=3).contains(&version) {
        return Err(refused(format!(
            "its __cuda_array_interface__ is of version {version}, and 2 and 3 are understood"
        )));
    }
    if optional("mask")?.is_some() {
        return Err(refused(
            "it has a mask, which a kernel does not see; fill the masked elements first",
        ));
    }
    let typestr: String = needed("typestr")?.extract()?;
    let dtype = element::of_typestr(&typestr)?;
    let shape = needed("shape")?;
    let strides = optional("strides")?;
    let strides = strides.as_ref().map(|s| s.cast::<PyTuple>()).transpose()?;
    let dims = of_bytes(shape.cast()?, strides, dtype.size())?;
    let (pointer, read_only): (u64, bool) = needed("data")?.extract()?;
    let stream: Option<i64> = match version {
        2 => None,
        _ => optional("stream")?.map(|s| s.extract()).transpose()?,
    };
    // SAFETY: the interface demands that the stream lives as long as the object, which is held.
    let order = unsafe { Order::from_array_interface_stream(stream) }?;
    let place = match (dims.len(), pointer) {
        // Nothing lies there, so any place will do.
        (Some(0), _) | (_, 0) => Place::Everywhere,
        _ => place_of(pointer)?,
    };
    let array = Description::new(pointer, dtype, dims, place, read_only)?;
    Ok((array, order))
}
