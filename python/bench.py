"""Host nanoseconds a launch of a kernel that does nothing and takes two arrays and two scalars, by everyone who can.

    python3 bench.py [launches a round] [rounds]

All contenders take turns in one run, on one stream, so that a machine that grows slower does so for all. Of each, the median
round counts. Between rounds the device is waited for, so that no queue fills.
"""

import statistics
import sys
import time

import gridcall_example as g

LAUNCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 500
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
SOURCE = 'extern "C" __global__ void empty4(const float* x, float* y, float a, int n) {}'

contenders = {}
left_out = {}


def contender(name):
    """Notes the launcher that the decorated function makes, or why it cannot."""

    def note(make):
        try:
            launch = make()
            measured = launch if getattr(launch, "measured", False) else None
            if measured is None:
                for _ in range(20):
                    launch()
            else:
                measured(20)
            contenders[name] = launch
        except Exception as error:  # whatever a library raises that is not there, or finds no GPU
            left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        return make

    return note


def rust(who, x, y):
    """Measured in Rust, without a loop of Python around it."""

    def run(launches):
        return g.measure(who, x, y, launches)

    run.measured = True
    return run


import torch  # noqa: E402  (the device is waited for through it)

torch.cuda.init()
STREAM = torch.cuda.Stream()
torch.cuda.set_stream(STREAM)
tx, ty = torch.zeros(32, device="cuda"), torch.zeros(32, device="cuda")

try:
    import cupy

    cupy.cuda.ExternalStream(STREAM.cuda_stream).use()
    cx, cy = cupy.zeros(32, dtype="float32"), cupy.zeros(32, dtype="float32")
except ImportError as error:
    cupy = None
    left_out["everything of CuPy"] = str(error)


@contender("bare cuLaunchKernel, from Rust")
def _():
    return rust("bare", tx, ty)


@contender("ours, from Rust, CudaSlice")
def _():
    return rust("cudarc", tx, ty)


@contender("ours, from Rust, Tensor")
def _():
    return rust("tensor", tx, ty)


@contender("ours, from Rust, TypedTensor")
def _():
    return rust("typed", tx, ty)


@contender("ours, from Rust, a PyArray of torch, read once")
def _():
    return rust("arrays", tx, ty)


@contender("ours, from Python, torch")
def _():
    return lambda: g.nothing(tx, ty, 1.0, 32)


@contender("ours, from Python, CuPy")
def _():
    return lambda: g.nothing(cx, cy, 1.0, 32)


@contender("ours, from Python, torch and CuPy")
def _():
    return lambda: g.nothing(tx, cy, 1.0, 32)


@contender("ours, from Python, torch, one array of another stream")
def _():
    theirs = cupy.cuda.Stream(non_blocking=True)

    def launch():
        # CuPy works on a stream of its own meanwhile, so its array is joined.
        g.nothing(cx, ty, 1.0, 32)

    def run(launches):
        with theirs:
            start = time.perf_counter_ns()
            for _ in range(launches):
                launch()
            return (time.perf_counter_ns() - start) / launches

    run.measured = True
    return run


def cuda_core():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    arch = "".join(map(str, device.compute_capability))
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{arch}"))
    kernel = program.compile("cubin", name_expressions=("empty4",)).get_kernel("empty4")
    stream = device.create_stream(STREAM)
    return kernel, stream, LaunchConfig(grid=1, block=32), launch


@contender("cuda.core, integer pointers kept by the user")
def _():
    import ctypes

    kernel, stream, config, launch = cuda_core()
    x, y = tx.data_ptr(), ty.data_ptr()
    a, n = ctypes.c_float(1.0), ctypes.c_int(32)
    return lambda: launch(stream, config, kernel, x, y, a, n)


@contender("cuda.core, a StridedMemoryView at each launch, torch")
def _():
    import ctypes

    from cuda.core.utils import StridedMemoryView

    kernel, stream, config, launch = cuda_core()
    a, n = ctypes.c_float(1.0), ctypes.c_int(32)

    def run():
        x = StridedMemoryView.from_dlpack(tx, stream_ptr=-1)
        y = StridedMemoryView.from_dlpack(ty, stream_ptr=-1)
        launch(stream, config, kernel, x.ptr, y.ptr, a, n)

    return run


@contender("CuPy RawKernel, CuPy")
def _():
    kernel = cupy.RawKernel(SOURCE, "empty4")
    a, n = cupy.float32(1.0), cupy.int32(32)
    return lambda: kernel((1,), (32,), (cx, cy, a, n))


@contender("torch.cuda._compile_kernel, torch")
def _():
    kernel = torch.cuda._compile_kernel(SOURCE, "empty4")
    return lambda: kernel((1, 1, 1), (32, 1, 1), (tx, ty, 1.0, 32))


@contender("Triton, torch")
def _():
    import triton
    import triton.language as tl

    @triton.jit
    def empty4(x, y, a, n, BLOCK: tl.constexpr):
        pass

    return lambda: empty4[(1,)](tx, ty, 1.0, 32, BLOCK=32)


@contender("numba-cuda, torch")
def _():
    from numba import cuda

    @cuda.jit
    def empty4(x, y, a, n):
        pass

    launcher = empty4[1, 32, cuda.external_stream(STREAM.cuda_stream)]
    return lambda: launcher(tx, ty, 1.0, 32)


def one_round(launch):
    if getattr(launch, "measured", False):
        return launch(LAUNCHES)
    start = time.perf_counter_ns()
    for _ in range(LAUNCHES):
        launch()
    return (time.perf_counter_ns() - start) / LAUNCHES


def main():
    rounds = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, launch in contenders.items():
            torch.cuda.synchronize()
            rounds[name].append(one_round(launch))
    torch.cuda.synchronize()
    medians = {name: statistics.median(times) for name, times in rounds.items()}
    bare = medians.get("bare cuLaunchKernel, from Rust")
    width = max(map(len, medians))
    print(f"{'':{width}}       ns  to the bare call")
    for name, median in medians.items():
        print(f"{name:{width}} {median:8.0f}  {median / bare:.2f}" if bare else f"{name:{width}} {median:8.0f}")
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")


main()
