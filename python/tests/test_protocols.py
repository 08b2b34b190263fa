"""The rules of DLPack, of the array interface and of streams, with tensors made by hand."""

import struct
import threading

import gridcall_example as g
import made
import pytest
from made import FreedInOrder, Interface, Legacy, Made, OldMade, Versioned


@pytest.fixture
def memory():
    return g.DeviceArray([float(n) for n in range(12)])


def copied(array, n):
    out = g.DeviceArray([-1.0] * n)
    g.copy(array, out)
    return out.tolist()


def refused(array, text, error=ValueError):
    with pytest.raises(error, match=rf"kernel `copy`: argument `input` \(parameter 0, &\[f32\]\): .*{text}"):
        g.copy(array, g.DeviceArray([0.0] * 12))


@pytest.mark.parametrize("kind", [Legacy, Versioned])
@pytest.mark.parametrize("maker", [Made, OldMade])
def test_a_capsule_is_taken_once_and_let_go_once(memory, kind, maker):
    array = maker(memory, (3, 4), struct=kind)
    assert copied(array, 12) == memory.tolist()
    assert made.name(array.given) == b"used_" + made.NAMES[kind]
    wait_until(lambda: array.released == 1)

    class Again:
        __dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **_):
            return array.given

    with pytest.raises(BufferError, match="a capsule can be taken once"):
        g.copy(Again(), memory)
    assert array.released == 1


def test_the_exporter_is_asked_for_order_and_version(memory):
    array = Made(memory, (12,))
    copied(array, 12)
    assert array.asked == [{"stream": 1, "max_version": (1, 3)}]
    old = OldMade(memory, (12,))
    copied(old, 12)
    assert old.asked == [{"stream": 1}]
    # Of memory of the host, no stream is asked for.
    pinned = Made(memory, (12,), device=(made.PINNED, 0))
    copied(pinned, 12)
    assert pinned.asked == [{"stream": None, "max_version": (1, 3)}]


def test_no_strides_are_those_of_contiguous_elements(memory):
    assert copied(Made(memory, (3, 4)), 12) == memory.tolist()
    assert copied(Made(memory, (3, 4), struct=Legacy), 12) == memory.tolist()


def test_strides(memory):
    # Those of one element lead nowhere.
    assert copied(Made(memory, (1, 3, 1, 4), (77, 4, -3, 1)), 12) == memory.tolist()
    refused(Made(memory, (3, 2), (4, 1)), r"not contiguous: shape \[3, 2\], strides \[4, 1\] in elements")
    refused(Made(memory, (3, 4), (0, 1)), r"strides \[0, 1\]")
    refused(Made(memory, (12,), (-1,), byte_offset=44), r"strides \[-1\]")
    out = g.tensor([0.0] * 6, [2, 3])
    zero = g.tensor([0.0] * 6, [2, 3])
    g.add(Made(memory, (2, 3), (0, 1)), zero, out)
    assert g.tolist(out) == [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]
    g.add(Made(memory, (2, 3), (-3, -1), byte_offset=5 * 4), zero, out)
    assert g.tolist(out) == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="several of its indices may be one element"):
        g.add(zero, zero, Made(memory, (2, 3), (0, 1)))


def test_strides_in_bytes(memory):
    refused(Interface(memory, shape=(3, 2), strides=(16, 4)), r"strides \[4, 1\] in elements")
    refused(Interface(memory, shape=(3,), strides=(6,)), "not whole elements of 4 bytes")
    # One element's may be what they like.
    assert copied(Interface(memory, shape=(1, 3), strides=(7, 4)), 3) == [0.0, 1.0, 2.0]
    refused(Interface(memory, shape=(3, 2), strides=(4,)), "of which there must be as many")


def test_the_byte_offset_counts(memory):
    assert copied(Made(memory, (4,), byte_offset=20), 4) == [5.0, 6.0, 7.0, 8.0]
    with pytest.raises(ValueError, match=r"input.len\(\) is 4 and n is 5"):
        copied(Made(memory, (4,), byte_offset=20), 5)


def test_no_elements(memory):
    for empty in (Made(memory, (0,), data=0), Made(memory, (3, 0, 2)), Interface(memory, shape=(0,), data=(0, False))):
        assert copied(empty, 0) == []
    assert copied(g.tensor([]), 0) == []
    assert g.tensor([]).__cuda_array_interface__["data"] == (0, False)
    refused(Made(memory, (3,), data=0), "null pointer")


def test_read_only_arrays_are_not_written(memory):
    frozen = Made(memory, (12,), flags=made.READ_ONLY)
    assert copied(frozen, 12) == memory.tolist()
    with pytest.raises(ValueError, match="its owner lends it read-only; pass a writable copy"):
        g.scale(Made(memory, (12,), flags=made.READ_ONLY), 2.0)


@pytest.mark.parametrize("version", [(0, 8), (2, 0)])
def test_another_major_version_is_let_go_and_not_read(memory, version):
    # A struct of which nothing but version and deleter makes sense.
    other = Made(memory, (12,), version=version, dtype=(255, 255, 65535), device=(made.CUDA, 99))
    refused(other, "not a tensor of DLPack 1")
    assert other.released == 1


def test_another_minor_version_is_taken(memory):
    assert copied(Made(memory, (12,), version=(1, 99)), 12) == memory.tolist()
    assert copied(Made(memory, (12,), version=(1, 0)), 12) == memory.tolist()


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_a_missing_deleter_is_not_called(memory, kind):
    assert copied(Made(memory, (12,), struct=kind, deleter=None), 12) == memory.tolist()


def test_a_capsule_of_something_else(memory):
    with pytest.raises(BufferError, match="holds no tensor of DLPack"):
        g.copy(Made(memory, (12,), named=b"arrow_array"), memory)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ((made.INT, 32, 1), "expected elements of f32, the array holds int32; convert it to float32 first"),
        ((made.FLOAT, 64, 1), "holds float64"),
        ((made.UINT, 32, 1), "holds uint32"),
        ((made.BOOL, 8, 1), "holds bool"),
        ((made.BFLOAT, 16, 1), "holds bfloat16"),
        ((made.COMPLEX, 64, 1), "holds complex64"),
        ((made.FP8, 8, 1), "holds float8_e4m3fn"),
    ],
)
def test_another_element_type(memory, dtype, text):
    refused(Made(memory, (3,), dtype=dtype), text, TypeError)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ((made.FP4, 4, 1), "f4e2m1fn floats of 4 bits, less than a byte"),
        ((made.INT, 4, 1), "view it as bytes"),
        ((made.BOOL, 32, 1), "booleans of 32 bits"),
        ((made.FLOAT, 32, 4), "vectors of 4 floats of 32 bits"),
        ((99, 32, 1), "unknown to DLPack"),
    ],
)
def test_elements_that_no_kernel_takes(memory, dtype, text):
    array = Made(memory, (3,), dtype=dtype)
    refused(array, text)
    assert array.released == 1


def test_bools_are_bytes_that_are_0_or_1(memory):
    a, b = g.DeviceArray([1.0, 2.0, 3.0, 4.0]), g.DeviceArray([1.0, 0.0, 3.0, 0.0])
    for out in (
        Interface(memory, shape=(4,), typestr="|b1"),
        Made(memory, (4,), dtype=(made.BOOL, 8, 1)),
    ):
        g.equal(a, b, out)
        # The first float now: the bytes 1, 0, 1, 0.
        assert memory.tolist()[0] == struct.unpack("<f", bytes([1, 0, 1, 0]))[0]
        g.scale(memory, 0.0)
    with pytest.raises(TypeError, match="expected elements of bool, the array holds uint8; convert it to bool first"):
        g.equal(a, b, Interface(memory, shape=(4,), typestr="|u1"))


def test_other_places(memory):
    refused(Made(memory, (12,), device=(made.CPU, 0)), "the array is in host memory; copy it to the GPU first")
    refused(Made(memory, (12,), device=(10, 0)), "a ROCm device")
    for place in (made.PINNED, made.MANAGED):
        assert copied(Made(memory, (12,), device=(place, 0)), 12) == memory.tolist()


def test_another_device(memory):
    try:
        there = g.tensor([1.0, 2.0], device=1)
    except RuntimeError as error:
        pytest.skip(f"needs two devices: {error}")
    assert there.__dlpack_device__() == (made.CUDA, 1)
    with pytest.raises(ValueError, match="the array is on device 1, the stream is on device 0"):
        g.copy(there, memory)
    with pytest.raises(ValueError, match="the array is on device 1, the stream is on device 0"):
        g.copy(Interface(memory, data=(there.__cuda_array_interface__["data"][0], False)), memory)
    g.scale(there, 3.0)
    assert g.tolist(there) == [3.0, 6.0]


@pytest.mark.parametrize("stream", [None, 1, 2])
def test_streams_of_the_interface(memory, stream):
    assert copied(Interface(memory, stream=stream), 12) == memory.tolist()


def test_streams_that_the_interface_does_not_allow(memory):
    refused(Interface(memory, stream=0), "does not allow stream 0, since it may mean two streams")
    refused(Interface(memory, stream=-1), "-1 is not a stream of CUDA")
    # Version 2 had none.
    assert copied(Interface(memory, stream=0, version=2), 12) == memory.tolist()


def test_a_stream_of_its_own_is_waited_for():
    theirs, ours = g.Stream(), g.Stream()
    one = g.DeviceArray([1.0] * 64)
    x, y = g.DeviceArray([0.0] * 64), g.DeviceArray([0.0] * 64)
    # Nothing is left to be done with them, so that they may be of any stream.
    for array in (one, x, y):
        array.tolist()
    one, x = (FreedInOrder(array, stream=theirs.handle) for array in (one, x))
    y = FreedInOrder(y, stream=ours.handle)
    for _ in range(100):
        g.saxpy_on(theirs, 1.0, one, x)
        g.saxpy_on(ours, 1.0, x, y)
    assert g.tolist(y) == [100 * 101 / 2] * 64


@pytest.mark.parametrize("handle", [0, 1, 2])
def test_default_streams_are_streams(memory, handle):
    class Stream:
        def __cuda_stream__(self):
            return (0, handle)

    g.saxpy_on(Stream(), 1.0, memory, g.DeviceArray([0.0] * 12))


def test_what_is_no_stream(memory):
    class Newer:
        def __cuda_stream__(self):
            return (1, 0)

    with pytest.raises(ValueError, match="of version 1, and 0 is understood"):
        g.saxpy_on(Newer(), 1.0, memory, memory)
    with pytest.raises(TypeError, match="'int' object is not a CUDA stream"):
        g.saxpy_on(1, 1.0, memory, memory)


def test_memory_is_let_go_once_from_any_thread(memory):
    """Each thread takes tensors, and drops them while the device is at work."""
    arrays = [[Made(memory, (12,)) for _ in range(200)] for _ in range(4)]
    out = [g.DeviceArray([0.0] * 12) for _ in range(4)]
    streams = [g.Stream() for _ in range(4)]

    def work(index):
        for array in arrays[index]:
            g.saxpy_on(streams[index], 1.0, array, out[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in out:
        assert array.tolist() == [200.0 * n for n in range(12)]
    wait_until(lambda: all(array.released == 1 for group in arrays for array in group))


def wait_until(condition):
    done = threading.Event()
    for _ in range(3000):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("it never came to pass")
