"""Where the arrays of these tests come from, and what is skipped where there is no device."""

import os

import gridcall_example as g
import pytest


@pytest.fixture(autouse=True)
def _emulator_finds_nothing(capfd):
    """A missing wait need not make a result wrong: the emulator tells of each on stderr."""
    yield
    told = capfd.readouterr().err
    assert "gridcall-emulator:" not in told, told


@pytest.fixture(autouse=True)
def _device():
    reason = g.why_no_device()
    if reason is not None:
        assert os.environ.get("GRIDCALL_TEST_REQUIRE_DEVICE") != "1", reason
        pytest.skip(f"needs a device: {reason}")


class Own:
    """Arrays of the example itself: there on every device, the emulator too."""

    name = "own"

    def array(self, values):
        return g.DeviceArray(values)

    def values(self, array):
        return array.tolist()


class Cupy:
    name = "cupy"

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")
        try:
            self.cupy.zeros(1)
        except Exception as error:  # whatever it raises where it finds no GPU
            pytest.skip(f"CuPy finds no GPU: {error}")

    def array(self, values):
        return self.cupy.array(values, dtype="float32")

    def from_dlpack(self, array):
        return self.cupy.from_dlpack(array)

    def values(self, array):
        return self.cupy.asnumpy(array).ravel().tolist()


class Torch:
    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("PyTorch finds no GPU")

    def array(self, values):
        return self.torch.tensor(values, dtype=self.torch.float32, device="cuda")

    def from_dlpack(self, array):
        return self.torch.from_dlpack(array)

    def values(self, array):
        return array.cpu().flatten().tolist()


LIBRARIES = {library.name: library for library in (Own, Cupy, Torch)}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]()


@pytest.fixture(params=LIBRARIES)
def other(request):
    return LIBRARIES[request.param]()


@pytest.fixture
def cupy():
    return Cupy().cupy


@pytest.fixture
def torch():
    return Torch().torch
