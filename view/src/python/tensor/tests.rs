//! What is asked of the driver for a tensor that Python has.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pyo3::{
    Bound, PyResult, Python,
    exceptions::{PyAttributeError, PyBufferError},
    types::{PyAnyMethods, PyDict, PyDictMethods},
};

use super::PyTensor;
use crate::{
    AsDeviceView, DType, ForeignStream, Order, Place, Tensor,
    python::{PyArray, tests::with_python},
};

/// Counts when it is dropped.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Six elements whose owner works on a stream.
fn tensor(dtype: DType, order: Order) -> (Tensor, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let owner = Box::new(Owner(dropped.clone()));
    // SAFETY: the driver of these tests never looks at an address.
    let tensor =
        unsafe { Tensor::from_parts(0x7000, dtype, &[2, 3], None, Place::Device(0), order, owner) };
    (tensor.unwrap(), dropped)
}

fn on(raw: usize) -> Order {
    // SAFETY: as above, at a handle.
    Order::Stream(unsafe { ForeignStream::from_raw(std::ptr::without_provenance_mut(raw)) })
}

fn give(py: Python<'_>, tensor: Tensor) -> Bound<'_, PyTensor> {
    Bound::new(py, PyTensor::new(tensor).unwrap()).unwrap()
}

fn export<'py>(
    object: &Bound<'py, PyTensor>,
    stream: Option<i64>,
) -> PyResult<Bound<'py, pyo3::PyAny>> {
    let keywords = PyDict::new(object.py());
    keywords.set_item("stream", stream)?;
    keywords.set_item("max_version", (1, 3))?;
    object.call_method("__dlpack__", (), Some(&keywords))
}

#[test]
fn a_tensor_is_joined_with_the_default_stream_both_ways() {
    with_python(|py, fake| {
        let (tensor, dropped) = tensor(DType::F32, on(0x51));
        let object = give(py, tensor);
        let both = ["record on 0x51", "0x1 waits", "record on 0x1", "0x51 waits"];
        assert_eq!(fake.calls(), both);
        let capsule = export(&object, Some(0x52)).unwrap();
        assert_eq!(fake.calls(), ["record on 0x1", "0x52 waits"]);
        for stream in [None, Some(1), Some(-1)] {
            export(&object, stream).unwrap();
            assert!(fake.calls().is_empty());
        }
        drop(object);
        assert!(fake.calls().is_empty());
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        // The capsule that nobody took was the last to have it.
        drop(capsule);
        let calls = fake.calls();
        assert_eq!(calls[..4], both);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn nothing_is_asked_where_the_default_stream_is_the_owners() {
    with_python(|py, fake| {
        let (tensor, dropped) = tensor(DType::F32, Order::Stream(ForeignStream::LEGACY_DEFAULT));
        let object = give(py, tensor);
        assert!(fake.calls().is_empty());
        let array: PyArray<'_> = object.extract().unwrap();
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert_eq!((view.pointer(), view.len()), (0x7000, 6));
        drop((array, object));
        // An event for all uses, which its release waits for.
        assert_eq!(fake.calls(), ["record on 0x1"]);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn failures_of_the_driver_are_told_and_lose_no_owner() {
    with_python(|py, fake| {
        fake.fail(Some("event_record"));
        let (refused, dropped) = tensor(DType::F32, on(0x51));
        assert!(PyTensor::new(refused).is_err());
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        fake.fail(None);
        let (tensor, dropped) = tensor(DType::F32, on(0x51));
        let object = give(py, tensor);
        fake.fail(Some("stream_wait_event"));
        assert!(
            export(&object, Some(0x52))
                .unwrap_err()
                .to_string()
                .contains("a failure of the test")
        );
        fake.calls();
        drop(object);
        assert!(fake.calls().contains(&"synchronize the context".to_owned()));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn what_the_older_protocols_cannot_say_is_refused() {
    with_python(|py, _| {
        let (mut frozen, _) = tensor(DType::BF16, Order::Settled);
        frozen.forbid_writing();
        let object = give(py, frozen);
        export(&object, None).unwrap();
        let error = object.call_method0("__dlpack__").unwrap_err();
        assert!(error.is_instance_of::<PyBufferError>(py));
        let error = object.getattr("__cuda_array_interface__").unwrap_err();
        assert!(error.is_instance_of::<PyAttributeError>(py));
        let array: PyArray<'_> = object.extract().unwrap();
        assert_eq!(array.dtype(), Some(DType::BF16));
    });
}

#[test]
fn the_interface_is_the_tensors() {
    with_python(|py, _| {
        let strides = [1, 2];
        // SAFETY: the driver of these tests never looks at an address.
        let transposed = unsafe {
            Tensor::from_parts(
                0x7000,
                DType::F64,
                &[2, 3],
                Some(&strides),
                Place::Device(0),
                Order::Settled,
                Box::new(()),
            )
        };
        let object = give(py, transposed.unwrap());
        let interface = object.getattr("__cuda_array_interface__").unwrap();
        let expected = c"dict(shape=(2, 3), typestr='<f8', data=(0x7000, False), strides=(8, 16), stream=1, version=3)";
        assert!(
            interface
                .eq(py.eval(expected, None, None).unwrap())
                .unwrap()
        );
        let array: PyArray<'_> = object.extract().unwrap();
        assert!(
            !AsDeviceView::<f64>::describe(&array)
                .unwrap()
                .is_contiguous()
        );
    });
}
