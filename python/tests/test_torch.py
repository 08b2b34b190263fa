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


def test_every_kind_of_tensor_is_read_as_it_is(torch):
    out = torch.zeros(6, device="cuda")
    base = torch.arange(24.0, device="cuda")
    swapped, other = base[:6].clone(), base[6:12].clone()
    torch.utils.swap_tensors(swapped, other)
    given = base[:6].clone()
    given.data = base[18:]
    for x, values in [
        (base[3:9], range(3, 9)),
        (base.view(2, 2, 6)[1, 0], range(12, 18)),
        (base[:6].view(1, 2, 1, 3), range(6)),
        (base[6:12].requires_grad_(), range(6, 12)),
        (torch.nn.Parameter(base[12:18]), range(12, 18)),
        (swapped, range(6, 12)),
        (given, range(18, 24)),
        (torch._lazy_clone(base)[:6], range(6)),
        (torch.tensor(7.0, device="cuda").expand(1, 1).repeat(2, 3), [7.0] * 6),
    ]:
        out.zero_()
        g.copy(x, out)
        assert out.tolist() == list(values), x
    # What was cloned lazily is written alone.
    clone = torch._lazy_clone(base)
    g.scale(clone, 2.0)
    assert (base == torch.arange(24.0, device="cuda")).all()
    assert (clone == 2 * base).all()
    # Nothing to do, and nothing to point to.
    g.copy(torch.zeros(0, device="cuda"), torch.zeros(0, device="cuda"))


@pytest.mark.parametrize(
    "name",
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float64 complex64 complex128 float8_e4m3fn float8_e5m2".split(),
)
def test_every_type_of_elements_is_told_apart(torch, name):
    out = torch.zeros(4, device="cuda")
    with pytest.raises(TypeError, match=f"the array holds torch.{name};"):
        g.copy(torch.empty(4, dtype=getattr(torch, name), device="cuda"), out)


def test_tensors_without_memory_are_refused(torch, capfd):
    from torch._subclasses.fake_tensor import FakeTensorMode

    out = torch.zeros(4, device="cuda")
    with FakeTensorMode():
        fake = torch.zeros(4, device="cuda")
    for x in [fake, torch.zeros(4, device="meta"), torch.zeros(4, device="cuda").to_sparse()]:
        with pytest.raises((ValueError, RuntimeError)):
            g.copy(x, out)
    assert out.tolist() == [0.0] * 4


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
