"""What functions return: tensors of ours, as other libraries see them."""

import ctypes

import gridcall_example as g
import made
import pytest


def test_a_tensor_is_returned_and_passed_on(library):
    x = library.array([1.0, 2.0, 3.0])
    y = library.array([10.0, 20.0, 30.0])
    out = g.axpy(2.0, x, y)
    assert out.shape == (3,) and out.dtype == "float32"
    assert repr(out) == "<gridcall.Tensor of float32 [3] on DLPack's device (2, 0)>"
    assert g.tolist(g.axpy(1.0, out, out)) == [24.0, 48.0, 72.0]
    g.scale(out, 0.5)
    assert g.tolist(out) == [6.0, 12.0, 18.0]
    assert library.values(y) == [10.0, 20.0, 30.0]


def test_the_struct_is_what_was_asked_for():
    x = g.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
    assert x.__dlpack_device__() == (made.CUDA, 0)
    for asked, struct in [
        (None, made.Legacy),
        ((0, 8), made.Legacy),
        ((1, 0), made.Versioned),
        ((1, 3), made.Versioned),
        ((2, 0), made.Versioned),
    ]:
        capsule = x.__dlpack__(max_version=asked)
        found = made.read(capsule)
        assert type(found) is struct
        tensor = found.dl_tensor
        assert (tensor.ndim, tensor.shape[:2], tensor.strides[:2]) == (2, [2, 3], [3, 1])
        assert (tensor.code, tensor.bits, tensor.lanes) == (made.FLOAT, 32, 1)
        assert tensor.data == x.__cuda_array_interface__["data"][0] and tensor.byte_offset == 0
        if struct is made.Versioned:
            assert (found.major, found.minor, found.flags) == (1, 3, 0)


@pytest.mark.parametrize("stream", [None, 1, 2, -1, "own"])
def test_streams_of_the_consumer(stream):
    own = g.Stream()
    x = g.tensor([1.0, 2.0])
    capsule = x.__dlpack__(stream=own.handle if stream == "own" else stream, max_version=(1, 3))
    assert made.name(capsule) == b"dltensor_versioned"


def test_streams_that_dlpack_does_not_allow():
    x = g.tensor([1.0])
    with pytest.raises(ValueError, match="DLPack does not allow stream 0"):
        x.__dlpack__(stream=0)
    with pytest.raises(ValueError, match="-2 is not a stream of CUDA"):
        x.__dlpack__(stream=-2)
    with pytest.raises(TypeError):
        x.__dlpack__(1)


def test_nothing_is_copied():
    x = g.tensor([1.0])
    x.__dlpack__(dl_device=(made.CUDA, 0), copy=False)
    with pytest.raises(BufferError, match="is not copied"):
        x.__dlpack__(dl_device=(made.CPU, 0))
    with pytest.raises(BufferError, match="is not copied"):
        x.__dlpack__(copy=True)


def test_the_consumers_stream_waits():
    """What was enqueued for the tensor is done before what the consumer enqueues on its stream."""
    theirs = g.Stream()
    out, one = on(theirs, [0.0] * 64), made.FreedInOrder(g.tensor([1.0] * 64))
    for _ in range(50):
        x = g.tensor([0.0] * 64)
        g.saxpy(1.0, one, made.FreedInOrder(x))
        x.__dlpack__(stream=theirs.handle)
        g.saxpy_on(theirs, 1.0, made.FreedInOrder(x, stream=theirs.handle), out)
        theirs.synchronize()
    assert g.tolist(out) == [50.0] * 64


def on(stream, values):
    """An array that its library works on from a stream of its own."""
    array = g.tensor(values)
    array.__dlpack__(stream=stream.handle)
    return made.FreedInOrder(array, stream=stream.handle)


def test_memory_is_kept_by_whoever_has_it():
    capsule = g.tensor([1.0, 2.0, 3.0]).__dlpack__(max_version=(1, 0))

    class Consumer:
        def __dlpack_device__(self):
            return (made.CUDA, 0)

        def __dlpack__(self, **_):
            return capsule

    assert g.tolist(Consumer()) == [1.0, 2.0, 3.0]
    assert made.name(capsule) == b"used_dltensor_versioned"


class Exchange(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("export", ctypes.c_void_p),
        ("import_", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


def exchange():
    return Exchange.from_address(made._pointer(g.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def function(address, *arguments):
    return ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)(address)


def test_the_exchange_api_describes_tensors():
    api = exchange()
    assert (api.major, api.minor, api.previous) == (1, 3, None)
    x = g.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])
    borrow = function(api.borrow, ctypes.py_object, ctypes.POINTER(made.DLTensor))
    tensor = made.DLTensor()
    assert borrow(x, tensor) == 0
    assert (tensor.ndim, tensor.shape[:2], tensor.strides[:2]) == (2, [3, 2], [2, 1])
    assert tensor.data == x.__cuda_array_interface__["data"][0]
    with pytest.raises(TypeError, match="Tensor"):
        borrow(object(), tensor)
    stream = ctypes.c_void_p()
    current = function(api.current_stream, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    assert current(made.CUDA, 0, stream) == 0 and stream.value == 1
    assert current(made.CPU, 0, stream) == 0 and stream.value is None


def test_the_exchange_api_exports_and_imports():
    api = exchange()
    export = function(api.export, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    import_ = function(api.import_, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
    managed, back = ctypes.c_void_p(), ctypes.py_object()
    x = g.tensor([1.0, 2.0, 3.0])
    assert export(x, managed) == 0
    address = x.__cuda_array_interface__["data"][0]
    del x
    assert import_(managed, back) == 0
    tensor = back.value
    ctypes.pythonapi.Py_DecRef(back)
    assert type(tensor) is g.Tensor and tensor.__cuda_array_interface__["data"][0] == address
    assert g.tolist(tensor) == [1.0, 2.0, 3.0]
    array = made.Made(g.DeviceArray([1.0]), (1,), device=(made.CPU, 0))
    array.capsule()
    with pytest.raises(ValueError, match="in host memory"):
        import_(ctypes.addressof(array.struct), back)
    assert array.released == 1


def test_the_exchange_api_allocates():
    api = exchange()
    told = []
    Tell = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    tell = Tell(lambda _, kind, text: told.append((kind, text.decode())))
    allocate = function(
        api.allocate, ctypes.POINTER(made.DLTensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, Tell
    )
    import_ = function(api.import_, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
    shape = (ctypes.c_int64 * 2)(2, 3)

    def prototype(device=(made.CUDA, 0), dtype=(made.FLOAT, 32, 1)):
        return made.DLTensor(None, *device, 2, *dtype, shape, None, 0)

    managed, back = ctypes.c_void_p(), ctypes.py_object()
    assert allocate(prototype(), managed, None, tell) == 0
    assert import_(managed, back) == 0
    tensor = back.value
    ctypes.pythonapi.Py_DecRef(back)
    assert tensor.shape == (2, 3)
    g.copy(g.tensor([float(n) for n in range(6)]), tensor)
    assert g.tolist(tensor) == [float(n) for n in range(6)]
    assert told == []
    assert allocate(prototype(device=(made.CPU, 0)), managed, None, tell) == -1
    assert allocate(prototype(dtype=(made.FP4, 4, 1)), managed, None, tell) == -1
    assert [kind for kind, _ in told] == [b"RuntimeError", b"RuntimeError"]
    assert "the prototype is on one of type 1" in told[0][1] and "less than a byte" in told[1][1]


def test_other_libraries_take_it(other):
    if other.name == "own":
        pytest.skip("about other libraries")
    x = g.tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
    taken = other.from_dlpack(x)
    assert tuple(taken.shape) == (2, 2) and other.values(taken) == [1.0, 2.0, 3.0, 4.0]
    taken *= 2
    g.scale(taken, 2.0)
    assert g.tolist(x) == [4.0, 8.0, 12.0, 16.0]
    del x
    assert other.values(taken) == [4.0, 8.0, 12.0, 16.0]
