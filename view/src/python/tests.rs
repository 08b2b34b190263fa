//! Python objects made by hand, read on a driver that only writes down what it is asked for.

use std::{
    cell::Cell,
    ffi::{CStr, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use dlpark::ffi::{
    DLDataType, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI,
    DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};
use pyo3::{
    Bound, PyAny, PyErr, PyResult, Python,
    exceptions::PyValueError,
    types::{
        PyAnyMethods, PyCapsule, PyCapsuleMethods, PyDict, PyDictMethods, PyModule, PyModuleMethods,
    },
};

use super::{PyArray, PyStream};
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, Element, ForeignStream, Layout, Order, Place, StreamRef,
    Tensor, foreign::fake,
};

/// The classes of these tests. A class named as another library's type is taken for it.
const CODE: &CStr = c"
import gc, weakref

class Interface:
    def __init__(self, **entries):
        self.__cuda_array_interface__ = dict(
            dict(shape=(2, 3), typestr='<f4', data=(0x7000, False), version=3), **entries)

class InterfaceByType:
    def __init__(self, **entries):
        self.entries = entries
    @property
    def __cuda_array_interface__(self):
        return dict(dict(shape=(2, 3), typestr='<f4', data=(0x7000, False), version=3), **self.entries)

class Dlpack:
    def __init__(self, capsule, device=(2, 0)):
        self.capsule, self.device, self.asked = capsule, device, []
    def __dlpack_device__(self):
        return self.device
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append((stream, max_version))
        return self.capsule

class OldDlpack(Dlpack):
    def __dlpack__(self, stream=None):
        self.asked.append((stream, 'old'))
        return self.capsule

class Exchanged:
    pass

class Tensor:
    __module__ = 'torch'
    neg = conj = False
    def is_neg(self): return self.neg
    def is_conj(self): return self.conj

class Stream:
    def __init__(self, *answer): self.answer = answer
    def __cuda_stream__(self): return self.answer

class ArrayOfTheHost:
    __array_interface__ = {}
";

fn module(py: Python<'_>) -> Bound<'_, PyModule> {
    PyModule::from_code(py, CODE, c"made_by_hand.py", c"made_by_hand").unwrap()
}

/// One test at a time, attached to Python. The session comes first: whoever waits for it must not
/// hold Python's lock.
pub(super) fn with_python(test: impl FnOnce(Python<'_>, &fake::Session)) {
    Python::initialize();
    let fake = fake::session();
    Python::attach(|py| test(py, &fake));
}

fn stream(raw: usize) -> StreamRef<'static> {
    let context = ptr::without_provenance_mut(fake::CONTEXT);
    // SAFETY: the driver of these tests never looks at a handle.
    unsafe { StreamRef::from_raw(ptr::without_provenance_mut(raw), context, 0) }
}

fn launch(array: &PyArray<'_>, raw: usize) {
    let guard = AsDeviceView::<f32>::acquire(array, stream(raw)).unwrap();
    guard.finish().unwrap();
}

fn refusal<T: Element>(array: &PyArray<'_>) -> String {
    AsDeviceView::<T>::describe(array).unwrap_err().to_string()
}

fn interface<'py>(py: Python<'py>, entries: &CStr) -> PyResult<PyArray<'py>> {
    let module = module(py);
    let by_object = py.eval(entries, Some(&module.dict()), None)?;
    // What is on the type and what is on the object is read alike.
    let by_type = entries
        .to_string_lossy()
        .replace("Interface(", "InterfaceByType(");
    let by_type = std::ffi::CString::new(by_type).unwrap();
    let by_type = py.eval(&by_type, Some(&module.dict()), None)?;
    let (one, other): (PyResult<PyArray<'_>>, PyResult<PyArray<'_>>) =
        (by_object.extract(), by_type.extract());
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let described = |array: &PyArray<'_>| {
                format!(
                    "{:?}",
                    AsDeviceView::<f32>::describe(array).map_err(|e| e.to_string())
                )
            };
            assert_eq!(described(&one), described(&other));
            Ok(one)
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.to_string(), other.to_string());
            Err(one)
        }
        _ => panic!("read otherwise by type than by object"),
    }
}

#[test]
fn an_array_interface_is_read() {
    with_python(|py, _| {
        let array = interface(py, c"Interface()").unwrap();
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert_eq!(
            (view.pointer(), view.len(), view.place()),
            (0x7000, 6, Place::Device(0))
        );
        assert!(view.is_contiguous());
        assert!(!view.is_read_only());
        let array = interface(py, c"Interface(strides=(20, 4))").unwrap();
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert!(!view.is_contiguous());
        assert_eq!(
            view.layout(),
            Layout::Strided {
                shape: &[2, 3],
                strides: &[5, 1]
            }
        );
        for (entries, contiguous) in [
            (c"Interface(strides=None, stream=None, mask=None)", true),
            (c"Interface(strides=(12, 4))", true),
            (c"Interface(shape=(1, 3), strides=(7, 4))", true),
            (c"Interface(shape=(3,), strides=(-4,))", false),
            (c"Interface(shape=(3,), strides=(0,))", false),
            (c"Interface(shape=(), strides=())", true),
            (c"Interface(shape=(0, 3), data=(0, False))", true),
            (c"Interface(version=2)", true),
        ] {
            let array = interface(py, entries).unwrap();
            let view = AsDeviceView::<f32>::describe(&array).unwrap();
            assert_eq!(view.is_contiguous(), contiguous, "{entries:?}");
        }
    });
}

#[test]
fn places_are_asked_for_where_nobody_says_them() {
    with_python(|py, _| {
        for (entries, place) in [
            (c"Interface(data=(0xd000, False))", Place::Device(1)),
            (c"Interface(data=(0xe000, False))", Place::Everywhere),
            (c"Interface(data=(0xf000, False))", Place::Everywhere),
        ] {
            let array = interface(py, entries).unwrap();
            assert_eq!(array.place(), Some(place), "{entries:?}");
        }
        let array = interface(py, c"Interface(data=(0x10000, False))").unwrap();
        let error = refusal::<f32>(&array);
        assert!(
            error.contains("plain host memory, or has been freed"),
            "{error}"
        );
    });
}

#[test]
fn interfaces_that_no_kernel_can_take_are_told_at_the_launch() {
    with_python(|py, _| {
        for (entries, text) in [
            (c"Interface(version=1)", "of version 1, and 2 and 3"),
            (c"Interface(version=4)", "of version 4"),
            (c"Interface(mask=Interface())", "it has a mask"),
            (c"Interface(stream=0)", "does not allow stream 0"),
            (c"Interface(stream=-1)", "-1 is not a stream"),
            (c"Interface(typestr='>f4')", "byte order"),
            (c"Interface(typestr='|V2')", "`|V2`"),
            (c"Interface(typestr='<f16')", "`<f16`"),
            (c"Interface(typestr='')", "``"),
            (
                c"Interface(strides=(13, 4))",
                "not whole elements of 4 bytes",
            ),
            (c"Interface(strides=(4,))", "must be as many"),
            (c"Interface(shape=(-1,))", "shape [-1]"),
            (c"Interface(data=(0, False))", "null pointer"),
            (c"Interface(shape=(2**62, 4))", "beyond all addresses"),
        ] {
            let array = interface(py, entries).unwrap();
            let error = refusal::<f32>(&array);
            assert!(error.contains(text), "{entries:?}: {error}");
            assert_eq!((array.size(), array.dtype()), (0, None));
        }
        // What is no interface at all is Python's to say.
        for entries in [
            c"Interface(shape=3)",
            c"Interface(data=None)",
            c"Interface(typestr=4)",
        ] {
            assert!(interface(py, entries).is_err(), "{entries:?}");
        }
    });
}

#[test]
fn element_types_are_told_apart_in_the_interface() {
    fn check<T: Element>(py: Python<'_>, entries: &CStr) {
        let array: PyArray<'_> = py
            .eval(entries, Some(&module(py).dict()), None)
            .unwrap()
            .extract()
            .unwrap();
        assert_eq!(array.dtype(), Some(T::DTYPE));
        assert!(AsDeviceView::<T>::describe(&array).is_ok());
    }
    with_python(|py, _| {
        check::<bool>(py, c"Interface(typestr='|b1')");
        check::<u8>(py, c"Interface(typestr='|u1')");
        check::<i8>(py, c"Interface(typestr='<i1')");
        check::<u16>(py, c"Interface(typestr='<u2')");
        check::<i32>(py, c"Interface(typestr='<i4')");
        check::<u64>(py, c"Interface(typestr='<u8')");
        check::<f64>(py, c"Interface(typestr='<f8')");
        let array = interface(py, c"Interface(typestr='|b1')").unwrap();
        assert_eq!(
            refusal::<u8>(&array),
            "expected elements of u8, the array holds bool; convert it to uint8 first"
        );
    });
}

#[test]
fn read_only_interfaces_say_so() {
    with_python(|py, _| {
        let array = interface(py, c"Interface(data=(0x7000, True))").unwrap();
        assert!(
            AsDeviceViewMut::<f32>::describe_mut(&array)
                .unwrap()
                .is_read_only()
        );
    });
}

#[test]
fn the_stream_of_an_interface_is_joined() {
    with_python(|py, fake| {
        let array = interface(py, c"Interface(stream=0x77)").unwrap();
        launch(&array, 0x77);
        assert_eq!(fake.calls(), [""; 0]);
        launch(&array, 0x51);
        assert_eq!(
            fake.calls(),
            [
                "record on 0x77",
                "0x51 waits",
                "record on 0x51",
                "0x77 waits"
            ]
        );
        let array = interface(py, c"Interface(stream=1)").unwrap();
        launch(&array, 0);
        assert_eq!(array.stream(), Some(ForeignStream::LEGACY_DEFAULT));
        fake.calls();
        let array = interface(py, c"Interface(stream=2)").unwrap();
        launch(&array, 0x51);
        assert_eq!(fake.calls()[0], "record on 0x2");
        // Version 2 knows no streams.
        let array = interface(py, c"Interface(stream=0x77, version=2)").unwrap();
        fake.calls();
        launch(&array, 0x51);
        assert_eq!(fake.calls(), ["record on 0x51"]);
    });
}

#[test]
fn an_object_is_kept_until_the_device_is_done() {
    Python::initialize();
    let fake = fake::session();
    let gone = Python::attach(|py| {
        let module = module(py);
        let object = module.getattr("Interface").unwrap().call0().unwrap();
        let gone = module
            .getattr("weakref")
            .unwrap()
            .call_method1("ref", (&object,))
            .unwrap();
        let array: PyArray<'_> = object.extract().unwrap();
        drop(object);
        launch(&array, 0x51);
        fake.busy(true);
        drop(array);
        thread::sleep(Duration::from_millis(2));
        assert!(!gone.call0().unwrap().is_none(), "let go too early");
        gone.unbind()
    });
    fake.busy(false);
    let start = Instant::now();
    while !Python::attach(|py| gone.call0(py).unwrap().is_none(py)) {
        assert!(start.elapsed() < Duration::from_secs(10), "never let go");
        thread::yield_now();
    }
}

#[test]
fn what_is_no_array_is_refused_as_an_argument() {
    with_python(|py, _| {
        let list = py.eval(c"[1.0]", None, None).unwrap();
        let error = list.extract::<PyArray<'_>>().unwrap_err().to_string();
        assert!(
            error.contains("'list' object is not a device array"),
            "{error}"
        );
        let array: PyArray<'_> = module(py)
            .getattr("ArrayOfTheHost")
            .unwrap()
            .call0()
            .unwrap()
            .extract()
            .unwrap();
        assert!(refusal::<f32>(&array).contains("in host memory"));
    });
}

thread_local! {
    /// The tensor that the functions of the exchange API give, and its library's stream.
    static GIVEN: Cell<(DLTensor, usize)> = const { Cell::new((TENSOR, 0x77)) };
}

static SHAPE: [i64; 2] = [2, 3];
static STRIDES: [i64; 2] = [3, 1];
static COLUMN: [i64; 2] = [1, 2];
static RELEASED: AtomicUsize = AtomicUsize::new(0);

const TENSOR: DLTensor = DLTensor {
    data: ptr::without_provenance_mut(0x7000),
    device: DLDevice {
        device_type: DLDeviceType::CUDA,
        device_id: 0,
    },
    ndim: 2,
    dtype: DLDataType::F32,
    shape: (&raw const SHAPE).cast_mut().cast(),
    strides: (&raw const STRIDES).cast_mut().cast(),
    byte_offset: 0,
};

fn managed(change: impl FnOnce(&mut DLManagedTensorVersioned)) -> *mut DLManagedTensorVersioned {
    unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
        // SAFETY: made below, and let go once.
        drop(unsafe { Box::from_raw(managed) });
        RELEASED.fetch_add(1, Ordering::SeqCst);
    }
    let mut managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 3 },
        manager_ctx: ptr::null_mut(),
        deleter: Some(delete),
        flags: dlpark::DlpackFlags::empty(),
        dl_tensor: TENSOR,
    };
    change(&mut managed);
    Box::into_raw(Box::new(managed))
}

fn capsule(
    py: Python<'_>,
    change: impl FnOnce(&mut DLManagedTensorVersioned),
) -> Bound<'_, PyCapsule> {
    let raw = NonNull::new(managed(change)).unwrap();
    // SAFETY: the capsule has no destructor; whoever takes the tensor owns it.
    unsafe { PyCapsule::new_with_pointer(py, raw.cast(), c"dltensor_versioned") }.unwrap()
}

#[test]
fn a_capsule_is_taken_once_and_let_go_once() {
    with_python(|py, fake| {
        RELEASED.store(0, Ordering::SeqCst);
        for class in ["Dlpack", "OldDlpack"] {
            let capsule = capsule(py, |_| {});
            let object = module(py)
                .getattr(class)
                .unwrap()
                .call1((&capsule,))
                .unwrap();
            let array: PyArray<'_> = object.extract().unwrap();
            assert_eq!(
                capsule.name().unwrap().map(|name| {
                    // SAFETY: the capsule is held.
                    unsafe { name.as_cstr() }.to_owned()
                }),
                Some(c"used_dltensor_versioned".to_owned())
            );
            let asked = object.getattr("asked").unwrap().to_string();
            let expected = match class {
                "Dlpack" => "[(1, (1, 3))]",
                _ => "[(1, 'old')]",
            };
            assert_eq!(asked, expected);
            let again = object.extract::<PyArray<'_>>().unwrap_err().to_string();
            assert!(again.contains("a capsule can be taken once"), "{again}");
            // Its library ordered its work into the legacy default stream.
            launch(&array, 0x51);
            assert_eq!(
                fake.calls(),
                ["record on 0x1", "0x51 waits", "record on 0x51", "0x1 waits"]
            );
            drop(array);
            fake.calls();
        }
        assert_eq!(RELEASED.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_tensor_goes_to_python_and_comes_back() {
    with_python(|py, _| {
        RELEASED.store(0, Ordering::SeqCst);
        let tensor = || {
            let raw = managed(|_| {});
            // SAFETY: nothing uses the memory that it speaks of.
            unsafe { Tensor::from_dlpack_ptr(raw, Order::Settled) }.unwrap()
        };
        drop(tensor().into_capsule(py, None).unwrap());
        assert_eq!(RELEASED.load(Ordering::SeqCst), 1);
        let capsule = tensor().into_capsule(py, None).unwrap();
        let object = module(py).getattr("Dlpack").unwrap().call1((&capsule,));
        let array: PyArray<'_> = object.unwrap().extract().unwrap();
        drop(capsule);
        assert_eq!(array.shape().unwrap(), [2, 3]);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 1);
        drop(array);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn capsules_that_no_kernel_can_take() {
    with_python(|py, _| {
        RELEASED.store(0, Ordering::SeqCst);
        let dlpack = module(py).getattr("Dlpack").unwrap();
        let read = |object: PyResult<Bound<'_, PyAny>>| -> String {
            let object = object.unwrap();
            let array: PyArray<'_> = object.extract().unwrap();
            refusal::<f32>(&array)
        };
        let error = read(dlpack.call1((capsule(py, |m| m.version.major = 2),)));
        assert!(error.contains("not a tensor of DLPack 1"), "{error}");
        let error = read(dlpack.call1((capsule(py, |m| m.dl_tensor.dtype.lanes = 2),)));
        assert!(error.contains("vectors of 2"), "{error}");
        let error = read(dlpack.call1((py.None(), (1, 0))));
        assert!(
            error.contains("in host memory; copy it to the GPU first"),
            "{error}"
        );
        assert_eq!(RELEASED.load(Ordering::SeqCst), 2);
        let nothing = dlpack.call1((py.None(),)).unwrap();
        assert!(nothing.extract::<PyArray<'_>>().is_err());
        // Managed memory is asked for without a stream, and may be used on every device.
        let managed = dlpack.call1((
            capsule(py, |m| {
                m.dl_tensor.device.device_type = DLDeviceType::CUDAMANAGED;
                m.flags = dlpark::DlpackFlags::READ_ONLY;
            }),
            (13, 0),
        ));
        let managed = managed.unwrap();
        let array: PyArray<'_> = managed.extract().unwrap();
        assert_eq!(
            managed.getattr("asked").unwrap().to_string(),
            "[(None, (1, 3))]"
        );
        assert_eq!(array.place(), Some(Place::Everywhere));
        assert!(
            AsDeviceViewMut::<f32>::describe_mut(&array)
                .unwrap()
                .is_read_only()
        );
    });
}

unsafe extern "C" fn describe(_: *mut c_void, out: *mut DLTensor) -> i32 {
    let (tensor, _) = GIVEN.get();
    if tensor.ndim < 0 {
        // SAFETY: attached to Python, as the exchange API demands of its callers.
        let py = unsafe { Python::assume_attached() };
        PyValueError::new_err("no tensor today\nand a trace of calls").restore(py);
        return -1;
    }
    // SAFETY: the caller provides the place.
    unsafe { *out = tensor };
    0
}

unsafe extern "C" fn export(_: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> i32 {
    // SAFETY: the caller provides the place.
    unsafe { *out = managed(|managed| managed.flags = dlpark::DlpackFlags::READ_ONLY) };
    0
}

unsafe extern "C" fn current(_: DLDeviceType, _: i32, out: *mut *mut c_void) -> i32 {
    // SAFETY: the caller provides the place.
    unsafe { *out = ptr::without_provenance_mut(GIVEN.get().1) };
    0
}

/// Gives a class a table, behind one of a version that nobody knows.
fn install(class: &Bound<'_, PyAny>, borrowed: bool) {
    let table = Box::leak(Box::new(DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader {
            version: DLPackVersion { major: 1, minor: 3 },
            prev_api: ptr::null_mut(),
        },
        managed_tensor_allocator: None,
        managed_tensor_from_py_object_no_sync: Some(export),
        managed_tensor_to_py_object_no_sync: None,
        dltensor_from_py_object_no_sync: if borrowed { Some(describe) } else { None },
        current_work_stream: Some(current),
    }));
    let newer = Box::leak(Box::new(DLPackExchangeAPIHeader {
        version: DLPackVersion { major: 2, minor: 0 },
        prev_api: &raw mut table.header,
    }));
    // SAFETY: the tables are never freed, and the capsule has no destructor.
    let capsule = unsafe {
        PyCapsule::new_with_pointer(
            class.py(),
            NonNull::from(newer).cast(),
            c"dlpack_exchange_api",
        )
    };
    class
        .setattr("__dlpack_c_exchange_api__", capsule.unwrap())
        .unwrap();
}

#[test]
fn the_exchange_api_gives_tensor_and_stream() {
    with_python(|py, fake| {
        let class = module(py).getattr("Exchanged").unwrap();
        install(&class, true);
        let array: PyArray<'_> = class.call0().unwrap().extract().unwrap();
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert_eq!((view.pointer(), view.len()), (0x7000, 6));
        launch(&array, 0x77);
        assert_eq!(fake.calls(), [""; 0]);
        launch(&array, 0x51);
        assert_eq!(
            fake.calls(),
            [
                "record on 0x77",
                "0x51 waits",
                "record on 0x51",
                "0x77 waits"
            ]
        );
        // What its library says is told by the launch.
        let broken = DLTensor { ndim: -1, ..TENSOR };
        GIVEN.set((broken, 0));
        let array: PyArray<'_> = class.call0().unwrap().extract().unwrap();
        assert_eq!(
            refusal::<f32>(&array),
            "its library does not export it: no tensor today"
        );
        // No stream is the legacy default stream.
        GIVEN.set((TENSOR, 0));
        let array: PyArray<'_> = class.call0().unwrap().extract().unwrap();
        assert_eq!(array.stream(), Some(ForeignStream::LEGACY_DEFAULT));
        GIVEN.set((TENSOR, 0x77));
    });
}

#[test]
fn the_exchange_api_without_borrowed_tensors() {
    with_python(|py, _| {
        RELEASED.store(0, Ordering::SeqCst);
        let class = module(py).getattr("Exchanged").unwrap();
        install(&class, false);
        let array: PyArray<'_> = class.call0().unwrap().extract().unwrap();
        assert!(
            AsDeviceViewMut::<f32>::describe_mut(&array)
                .unwrap()
                .is_read_only()
        );
        assert_eq!(RELEASED.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn torch_is_asked_whether_its_elements_are_as_stored() {
    with_python(|py, fake| {
        let class = module(py).getattr("Tensor").unwrap();
        install(&class, true);
        let tensor = class.call0().unwrap();
        let array: PyArray<'_> = tensor.extract().unwrap();
        assert_eq!(
            refusal::<i32>(&array),
            "expected elements of i32, the array holds torch.float32; convert it first: `.to(torch.int32)`"
        );
        assert_eq!(
            AsDeviceView::<f32>::make_contiguous(&array),
            "make it contiguous first: `.contiguous()`"
        );
        // Its memory is reused in the order of its streams.
        launch(&array, 0x77);
        drop(array);
        assert_eq!(fake.calls(), [""; 0]);
        tensor.setattr("neg", true).unwrap();
        let array: PyArray<'_> = tensor.extract().unwrap();
        let error = refusal::<f32>(&array);
        assert!(
            error.contains("negated lazily") && error.contains("`.resolve_neg()`"),
            "{error}"
        );
        tensor.setattr("neg", false).unwrap();
        tensor.setattr("conj", true).unwrap();
        GIVEN.set((
            DLTensor {
                dtype: DLDataType::C64,
                ..TENSOR
            },
            0x77,
        ));
        let array: PyArray<'_> = tensor.extract().unwrap();
        let error = refusal::<f32>(&array);
        assert!(error.contains("`.resolve_conj()`"), "{error}");
        let on_host = DLDevice {
            device_type: DLDeviceType::CPU,
            device_id: 0,
        };
        GIVEN.set((
            DLTensor {
                device: on_host,
                ..TENSOR
            },
            0x77,
        ));
        let array: PyArray<'_> = tensor.extract().unwrap();
        assert!(refusal::<f32>(&array).contains("`.to(\"cuda\")`"));
        GIVEN.set((TENSOR, 0x77));
    });
}

#[test]
fn a_shape_is_asked_for_when_it_is_wanted() {
    with_python(|py, _| {
        let class = module(py).getattr("Tensor").unwrap();
        install(&class, true);
        let tensor = class.call0().unwrap();
        let array: PyArray<'_> = tensor.extract().unwrap();
        assert_eq!(array.shape().unwrap(), [2, 3]);
        let strided = AsDeviceView::<f32>::describe_strided(&array).unwrap();
        assert!(strided.is_contiguous() && strided.may_write_on(ptr::without_provenance_mut(0x77)));
        // By then it must be what it was.
        for other in [
            DLTensor { ndim: 1, ..TENSOR },
            DLTensor {
                data: ptr::without_provenance_mut(0x8000),
                ..TENSOR
            },
        ] {
            let array: PyArray<'_> = tensor.extract().unwrap();
            GIVEN.set((other, 0x77));
            let error = array.shape().unwrap_err().to_string();
            assert!(error.contains("another shape meanwhile"), "{error}");
            GIVEN.set((TENSOR, 0x77));
            assert_eq!(array.shape().unwrap(), [2, 3]);
        }
        let broken = DLTensor { ndim: -1, ..TENSOR };
        let array: PyArray<'_> = tensor.extract().unwrap();
        GIVEN.set((broken, 0x77));
        let error = array.shape().unwrap_err().to_string();
        assert!(error.contains("no tensor today"), "{error}");
        assert!(PyErr::take(py).is_none());
        GIVEN.set((TENSOR, 0x77));
    });
}

#[test]
fn references_are_given_back() {
    with_python(|py, fake| {
        fake.quiet();
        let class = module(py).getattr("Tensor").unwrap();
        install(&class, true);
        let tensor = class.call0().unwrap();
        // SAFETY: an object that is held.
        let references = || unsafe { pyo3::ffi::Py_REFCNT(tensor.as_ptr()) };
        let before = references();
        for round in 0..1000 {
            let broken = DLTensor { ndim: -1, ..TENSOR };
            let column = DLTensor {
                strides: COLUMN.as_ptr().cast_mut(),
                ..TENSOR
            };
            let given = [TENSOR, broken, column][round % 3];
            GIVEN.set((given, 0x77));
            let array: PyArray<'_> = tensor.extract().unwrap();
            assert_eq!(references(), before + 1);
            if AsDeviceView::<f32>::describe(&array).is_ok() {
                launch(&array, 0x51);
            }
            let _ = array.shape();
            drop(array);
            assert_eq!(references(), before);
            assert!(PyErr::take(py).is_none());
        }
        GIVEN.set((TENSOR, 0x77));
    });
}

/// What there is of CuPy where there is no CuPy.
const CUPY: &CStr = c"
import sys, types

class dtype:
    def __init__(self, name, isnative=True): self.name, self.isnative = name, isnative

class MemoryPointer:
    def __init__(self, ptr, device_id=0): self._ptr, self._device_id = ptr, device_id
    @property
    def ptr(self): return self._ptr
    @property
    def device_id(self): return self._device_id

class ndarray:
    __module__ = 'cupy'
    asked = 0
    def __init__(self, shape, strides, name='float32', ptr=0x7000, device=0, native=True):
        self._shape, self._strides, self._dtype = shape, strides, dtype(name, native)
        self._data = MemoryPointer(ptr, device)
    @property
    def shape(self):
        self.asked += 1
        return self._shape
    @property
    def strides(self): return self._strides
    @property
    def dtype(self): return self._dtype
    @property
    def data(self): return self._data
    @property
    def size(self):
        n = 1
        for extent in self._shape: n *= extent
        return n
    @property
    def _c_contiguous(self):
        expected = 4
        for extent, stride in zip(reversed(self._shape), reversed(self._strides)):
            if extent != 1 and stride != expected: return False
            expected *= extent
        return True

cuda = types.ModuleType('cupy.cuda')
cuda.MemoryPointer = MemoryPointer
cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=0x77)
sys.modules['cupy'] = types.ModuleType('cupy')
sys.modules['cupy.cuda'] = sys.modules['cupy'].cuda = cuda
";

#[test]
fn cupys_arrays_are_read_by_their_attributes() {
    with_python(|py, fake| {
        let module = PyModule::from_code(py, CUPY, c"cupy_by_hand.py", c"cupy_by_hand").unwrap();
        let read = |code: &CStr| {
            let object = py.eval(code, Some(&module.dict()), None).unwrap();
            (object.extract::<PyArray<'_>>().unwrap(), object)
        };
        let (array, object) = read(c"ndarray((2, 3), (12, 4))");
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert_eq!(
            (view.pointer(), view.len(), view.place()),
            (0x7000, 6, Place::Device(0))
        );
        assert_eq!(
            object.getattr("asked").unwrap().extract::<usize>().unwrap(),
            0
        );
        // The shape is looked up when it is asked for, once.
        for _ in 0..2 {
            let view = AsDeviceView::<f32>::describe_strided(&array).unwrap();
            assert_eq!(
                view.layout(),
                Layout::Strided {
                    shape: &[2, 3],
                    strides: &[3, 1]
                }
            );
            assert!(view.is_contiguous());
        }
        assert_eq!(array.shape().unwrap(), [2, 3]);
        assert_eq!(
            object.getattr("asked").unwrap().extract::<usize>().unwrap(),
            1
        );
        launch(&array, 0x77);
        assert_eq!(fake.calls(), [""; 0]);
        launch(&array, 0x51);
        assert_eq!(fake.calls().len(), 4);
        // CuPy reuses memory in the order of its streams.
        drop(array);
        assert_eq!(fake.calls(), [""; 0]);

        let (array, _) = read(c"ndarray((2, 3), (20, 4), device=1)");
        let view = AsDeviceView::<f32>::describe(&array).unwrap();
        assert_eq!(
            view.layout(),
            Layout::Strided {
                shape: &[2, 3],
                strides: &[5, 1]
            }
        );
        assert_eq!(view.place(), Place::Device(1));
        assert_eq!(
            AsDeviceView::<f32>::make_contiguous(&array),
            "make it contiguous first: `cupy.ascontiguousarray(..)`"
        );
        let (array, _) = read(c"ndarray((2,), (4,), name='int64')");
        assert_eq!(
            refusal::<i32>(&array),
            "expected elements of i32, the array holds cupy.int64; convert it first: `.astype(cupy.int32)`"
        );
        let (array, _) = read(c"ndarray((2,), (4,), name='bfloat16')");
        assert_eq!(array.dtype(), Some(DType::BF16));
        let (array, _) = read(c"ndarray((2,), (4,), name='longdouble')");
        assert!(refusal::<f32>(&array).contains("elements are longdouble"));
        let (array, _) = read(c"ndarray((2,), (4,), native=False)");
        assert!(refusal::<f32>(&array).contains("byte order"));
        let (array, _) = read(c"ndarray((2, 2), (4, 10))");
        assert!(refusal::<f32>(&array).contains("not whole elements"));
        let (array, _) = read(c"ndarray((0,), (4,), ptr=0)");
        assert!(AsDeviceView::<f32>::describe(&array).unwrap().is_empty());
    });
}

#[test]
fn streams_of_python() {
    with_python(|py, _| {
        let class = module(py).getattr("Stream").unwrap();
        let raw = |version: i64, handle: u64| {
            let object = class.call1((version, handle)).unwrap();
            object
                .extract::<PyStream<'_>>()
                .map(|stream| stream.stream().raw().addr())
        };
        assert_eq!(raw(0, 0x77).unwrap(), 0x77);
        assert_eq!(raw(0, 0).unwrap(), 1);
        assert_eq!(raw(0, 2).unwrap(), 2);
        assert!(
            raw(1, 0x77)
                .unwrap_err()
                .to_string()
                .contains("of version 1")
        );
        let none = py.None().into_bound(py);
        let error = none.extract::<PyStream<'_>>().unwrap_err().to_string();
        assert!(
            error.contains("'NoneType' object is not a CUDA stream"),
            "{error}"
        );
    });
}

#[test]
fn many_types_are_read_and_few_remembered() {
    with_python(|py, _| {
        let globals = module(py).dict();
        for _ in 0..200 {
            let locals = PyDict::new(py);
            py.run(
                c"class Fresh(InterfaceByType): pass\nobject = Fresh()",
                Some(&globals),
                Some(&locals),
            )
            .unwrap();
            let object = locals.get_item("object").unwrap().unwrap();
            let array: PyArray<'_> = object.extract().unwrap();
            assert_eq!(array.size(), 6);
        }
    });
}
