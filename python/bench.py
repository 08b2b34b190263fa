"""Host nanoseconds a launch of a kernel that does nothing and takes two arrays and two scalars, by everyone who can.

    python3 bench.py [launches a round] [rounds] [default or own]

All contenders take turns in one run, in another order each time, so that a machine that grows slower does so for all. They launch
on the default stream, or on one of PyTorch's own, unless their name says otherwise. Of each, the median round counts. Each launches from the same bare loop (`timeit`),
without a function of Python around it. Between rounds the device is waited for, and no round makes as many launches as the
driver's queue holds: what is measured is the host.
"""

import contextlib
import itertools
import random
import statistics
import sys
import timeit

import gridcall_example as g

LAUNCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 200
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
OWN = {"default": False, "own": True}[sys.argv[3] if len(sys.argv) > 3 else "default"]
BARE = "bare cuLaunchKernel, from Rust"
SCALARS = itertools.cycle([1.0, 2.0])
SOURCE = 'extern "C" __global__ void empty4(const float* x, float* y, float a, int n) {}'

contenders = {}
left_out = {}


class Contender:
    """A statement that launches once, the names in it, and what is entered around a round."""

    def __init__(self, statement, within=contextlib.nullcontext, share=1.0, **names):
        setup = "".join(f"{name} = _{name}\n" for name in names) or "pass"
        self.timer = timeit.Timer(statement, setup, globals={f"_{name}": value for name, value in names.items()})
        self.within = within
        self.launches = max(1, int(LAUNCHES * share))

    def nanoseconds(self, launches):
        with self.within():
            self.timer.timeit(5)
            return self.timer.timeit(launches) * 1e9 / launches


class Rust(Contender):
    """Measured in Rust, without a loop of Python around it."""

    def __init__(self, who, x, y):
        super().__init__("pass")
        self.arguments = who, x, y

    def nanoseconds(self, launches):
        return g.measure(*self.arguments, launches)


def contender(name):
    """Notes what the decorated function makes, or why it cannot."""

    def note(make):
        try:
            made = make()
            made.nanoseconds(20)
            contenders[name] = made
        except Exception as error:  # whatever a library raises that is not there, or finds no GPU
            left_out[name] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return make

    return note


import torch  # noqa: E402  (the device is waited for through it)

torch.cuda.init()
STREAM = torch.cuda.Stream() if OWN else torch.cuda.default_stream()
torch.cuda.set_stream(STREAM)
tx, ty = torch.zeros(32, device="cuda"), torch.zeros(32, device="cuda")

everywhere = contextlib.ExitStack()
try:
    import cupy

    # Entered, not merely used: leaving the block of another stream comes back to the one that was entered.
    everywhere.enter_context(cupy.cuda.ExternalStream(STREAM.cuda_stream) if OWN else cupy.cuda.Stream.null)
    cx, cy = cupy.zeros(32, dtype="float32"), cupy.zeros(32, dtype="float32")
    waiting, theirs = cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
except Exception as error:
    cupy = cx = cy = waiting = theirs = None
    left_out["everything of CuPy"] = f"{type(error).__name__}: {error}"


@contender(BARE)
def _():
    return Rust("bare", tx, ty)


@contender("ours, from Rust, CudaSlice")
def _():
    return Rust("cudarc", tx, ty)


@contender("ours, from Rust, TypedTensor")
def _():
    return Rust("typed", tx, ty)


@contender("ours, from Rust, Tensor")
def _():
    return Rust("tensor", tx, ty)


@contender("ours, from Rust, a PyArray of torch, read once")
def _():
    return Rust("arrays", tx, ty)


def ours(launch):
    """Contenders that call a function of the module with arrays as they are."""

    def note(how, make):
        contender(f"ours, from Python, {launch.__name__}, {how}")(make)

    def call(x, y, **within):
        # Another scalar each time, so that no launch is the one before.
        return Contender("launch(x, y, next(a), 32)", launch=launch, x=x, y=y, next=next, a=SCALARS, **within)

    note("torch", lambda: call(tx, ty))
    note("CuPy", lambda: call(cx, cy))
    note("torch and CuPy", lambda: call(tx, cy))
    # A launch then is six entries of queues.
    note("CuPy and torch, CuPy's on a stream of its own", lambda: call(cx, ty, within=lambda: theirs, share=0.5))
    note("the same, that waits for the default stream", lambda: call(cx, ty, within=lambda: waiting, share=0.5))


ours(g.nothing)
ours(g.nothing_replayed)


def cuda_core():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    arch = "".join(map(str, device.compute_capability))
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{arch}"))
    return {
        "kernel": program.compile("cubin", name_expressions=("empty4",)).get_kernel("empty4"),
        "stream": device.create_stream(STREAM) if OWN else device.default_stream,
        "config": LaunchConfig(grid=1, block=32),
        "launch": launch,
    }


def scalars():
    import ctypes

    return {"a": ctypes.c_float(1.0), "n": ctypes.c_int(32)}


@contender("cuda.core, integer pointers kept by the user")
def _():
    statement = "launch(stream, config, kernel, x, y, a, n)"
    return Contender(statement, x=tx.data_ptr(), y=ty.data_ptr(), **scalars(), **cuda_core())


def with_views(x, y):
    from cuda.core.utils import StridedMemoryView

    statement = """
xv = view(x, stream_ptr=-1)
yv = view(y, stream_ptr=-1)
launch(stream, config, kernel, xv.ptr, yv.ptr, a, n)
"""
    return Contender(statement, x=x, y=y, view=StridedMemoryView.from_dlpack, **scalars(), **cuda_core())


@contender("cuda.core, a StridedMemoryView at each launch, torch")
def _():
    return with_views(tx, ty)


@contender("cuda.core, a StridedMemoryView at each launch, CuPy")
def _():
    return with_views(cx, cy)


@contender("CuPy RawKernel, CuPy")
def _():
    kernel = cupy.RawKernel(SOURCE, "empty4")
    return Contender(
        "kernel(grid, block, (x, y, a, n))",
        kernel=kernel,
        grid=(1,),
        block=(32,),
        x=cx,
        y=cy,
        a=cupy.float32(1.0),
        n=cupy.int32(32),
    )


@contender("torch.cuda._compile_kernel, torch")
def _():
    kernel = torch.cuda._compile_kernel(SOURCE, "empty4")
    statement = "kernel(grid, block, (x, y, 1.0, 32))"
    return Contender(statement, kernel=kernel, grid=(1, 1, 1), block=(32, 1, 1), x=tx, y=ty)


try:
    import triton
    import triton.language as tl  # Triton looks for the names of a kernel among those of its module.

    @triton.jit
    def triton_empty4(x, y, a, n, BLOCK: tl.constexpr):
        pass

except ImportError as error:
    triton, no_triton = None, error


@contender("Triton, torch")
def _():
    if triton is None:
        raise no_triton
    return Contender("kernel[grid](x, y, 1.0, 32, BLOCK=32)", kernel=triton_empty4, grid=(1,), x=tx, y=ty)


@contender("numba-cuda, torch")
def _():
    import numpy

    if not hasattr(numpy, "row_stack"):
        # NumPy 2.5 took away the old name, which numba-cuda 0.30 asks for at the first launch.
        numpy.row_stack = numpy.vstack
    from numba import cuda

    @cuda.jit
    def empty4(x, y, a, n):
        pass

    launcher = empty4[1, 32, cuda.external_stream(STREAM.cuda_stream) if OWN else cuda.default_stream()]
    return Contender("launch(x, y, 1.0, 32)", launch=launcher, x=tx, y=ty)


def main():
    random.seed(1)
    rounds = {name: [] for name in contenders}
    turns = list(contenders.items())
    for _ in range(ROUNDS):
        random.shuffle(turns)
        for name, launcher in turns:
            torch.cuda.synchronize()
            rounds[name].append(launcher.nanoseconds(launcher.launches))
    torch.cuda.synchronize()
    medians = {name: statistics.median(times) for name, times in rounds.items()}
    bare = medians.get(BARE)
    width = max(map(len, medians))
    print(f"{'':{width}}       ns  to the bare call")
    for name, median in medians.items():
        print(f"{name:{width}} {median:8.0f}  {median / bare:.2f}" if bare else f"{name:{width}} {median:8.0f}")
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")


with everywhere:
    main()
