"""CuPy's arrays, in CuPy's words."""

import gridcall_example as g
import pytest


def test_matrices(cupy):
    a = cupy.arange(6, dtype="float32").reshape(2, 3)
    out = cupy.empty((2, 3), dtype="float32")
    g.add(a, cupy.ascontiguousarray(a.T).T[:, ::-1], out)
    assert (out == a + a[:, ::-1]).all()
    g.add(a, cupy.broadcast_to(a[0], (2, 3)), out)
    assert (out == a + a[0]).all()


def test_its_words(cupy):
    out = cupy.zeros(4, dtype="float32")
    with pytest.raises(TypeError, match=r"the array holds cupy.int64; convert it first: `.astype\(cupy.float32\)`"):
        g.copy(cupy.zeros(4, dtype="int64"), out)
    with pytest.raises(ValueError, match=r"make it contiguous first: `cupy.ascontiguousarray\(..\)`"):
        g.copy(cupy.zeros((4, 2), dtype="float32")[:, 0], out)


def test_a_subclass_is_an_array(cupy):
    class Mine(cupy.ndarray):
        pass

    y = cupy.ones(4, dtype="float32").view(Mine)
    g.scale(y, 3.0)
    assert y.tolist() == [3.0] * 4


def test_its_current_stream_is_launched_on(cupy):
    x = cupy.zeros(1 << 20, dtype="float32")
    out = cupy.zeros(1 << 20, dtype="float32")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        for n in range(200):
            x += 1
            g.copy(x, out)
            assert not (n % 50 == 0 and (out != n + 1).any())
