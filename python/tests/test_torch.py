"""PyTorch's tensors, in PyTorch's words."""

import gridcall_example as g
import pytest


def test_its_words(torch):
    out = torch.zeros(4, device="cuda")
    with pytest.raises(TypeError, match=r"the array holds torch.int64; convert it first: `.to\(torch.float32\)`"):
        g.copy(torch.zeros(4, dtype=torch.int64, device="cuda"), out)
    with pytest.raises(ValueError, match=r"make it contiguous first: `.contiguous\(\)`"):
        g.copy(torch.zeros(4, 2, device="cuda")[:, 0], out)
    with pytest.raises(ValueError, match=r'copy it to the GPU first: `.to\("cuda"\)`'):
        g.copy(torch.zeros(4), out)


def test_lazy_tensors_are_refused(torch):
    out = torch.zeros(4, device="cuda")
    x = torch.ones(4, device="cuda")
    with pytest.raises(ValueError, match=r"negated lazily.*`.resolve_neg\(\)`"):
        g.copy(torch._neg_view(x), out)
    imaginary = torch.view_as_complex(torch.ones(4, 2, device="cuda")).conj().imag
    assert imaginary.is_neg()
    with pytest.raises(ValueError, match=r"negated lazily"):
        g.copy(imaginary, out)
    g.copy(imaginary.resolve_neg(), out)
    assert out.tolist() == [-1.0] * 4


def test_parameters_are_tensors(torch):
    y = torch.nn.Parameter(torch.ones(4, device="cuda"))
    g.scale(y, 3.0)
    assert y.tolist() == [3.0] * 4


def test_a_stream_of_its_own(torch):
    x = torch.zeros(1 << 20, device="cuda")
    out = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for n in range(200):
            x += 1
            g.copy(x, out)
            assert not (n % 50 == 0 and (out != n + 1).any())


def test_any_stream_is_joined(torch):
    theirs, ours = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(theirs):
        x = torch.zeros(1 << 20, device="cuda")
        y = torch.zeros(1 << 20, device="cuda")
        for _ in range(1000):
            x += 1
            g.saxpy_on(ours, 1.0, x, y)
        # The next use on their stream waits for the last launch.
        assert (y == 1000 * 1001 / 2).all()


def test_two_libraries_on_two_streams(torch, cupy):
    with torch.cuda.stream(torch.cuda.Stream()), cupy.cuda.Stream(non_blocking=True):
        x = torch.zeros(1 << 18, device="cuda")
        y = cupy.zeros(1 << 18, dtype="float32")
        for n in range(1, 1001):
            x += 1
            y += 1
            g.saxpy(1.0, x, y)
            if n % 100 == 0:
                assert (y == n + n * (n + 1) / 2).all()


def test_memory_may_be_taken_back_at_once(torch, cupy):
    y = cupy.zeros(1 << 20, dtype="float32")
    for n in range(1, 201):
        with torch.cuda.stream(torch.cuda.Stream()):
            # The tensor is gone when the launch returns, and its memory is used again.
            g.saxpy(1.0, torch.full((1 << 20,), 1.0, device="cuda"), y)
            torch.full((1 << 20,), 7.0, device="cuda")
    assert (y == 200).all()
