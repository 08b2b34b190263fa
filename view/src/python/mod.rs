//! Arrays of Python libraries, as they are, as arguments of functions that are exported to Python.
//!
//! [`PyArray`] is extracted like any argument of a `#[pyfunction]`. How an object is read depends on
//! its type, and is found out once for each type: by DLPack's C exchange API (PyTorch from 2.10; its
//! own tensors by C functions that tell the same sooner), by CuPy's own fields or attributes, by
//! `__dlpack__`, or by `__cuda_array_interface__` of version 2 or 3.
//! [`PyTensor`] is the way back: an array that such a function returns.
//!
//! # Order
//!
//! A launch on the stream on which the library works now needs nothing; `gridcall::python::stream_of`
//! gives that stream. On another stream the launch waits for what the library has enqueued on its
//! own, and what the library enqueues there later waits for the launch: once for all arrays of a
//! launch that are on that stream. The host never waits.
//! PyTorch and CuPy reuse memory in the order of their streams, so that their objects may be
//! deleted at once; of other libraries that is not known, and the object is kept until the device
//! is done with it.
//!
//! # What is believed
//!
//! As everywhere in Python, an object's word on its own memory is believed. Whether two arrays
//! overlap is checked at each launch. A PyTorch tensor is looked at for whether its elements are
//! negated or conjugated lazily.

mod array;
mod capsule;
mod cupy;
mod cupy_fields;
mod element;
mod exchange;
mod export;
mod field;
mod interface;
mod lazy;
mod library;
mod route;
mod stream;
mod table;
mod tensor;
#[cfg(test)]
mod tests;
mod torch;
mod unread;
mod words;

pub use array::PyArray;
pub use stream::PyStream;
pub use tensor::PyTensor;
