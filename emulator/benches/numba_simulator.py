"""How fast numba's CUDA simulator runs an axpy and a kernel with a barrier, in threads a second.

Needs `numba-cuda` and `numpy`. What the emulator does is told by the benches beside this file.
"""

import os
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np  # noqa: E402
from numba import cuda, float32  # noqa: E402

BLOCK = 256


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += a * x[i]


@cuda.jit
def reverse(x, y):
    """Turns each block around, through shared memory."""
    tile = cuda.shared.array(BLOCK, float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    y[i] = tile[BLOCK - 1 - cuda.threadIdx.x]


def threads_a_second(launch, threads):
    """The best of three runs."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        launch()
        seconds.append(time.perf_counter() - start)
    return threads / min(seconds)


def main():
    blocks = 16
    n = blocks * BLOCK
    x = np.arange(n, dtype=np.float32)

    y = np.ones_like(x)
    rate = threads_a_second(lambda: axpy[blocks, BLOCK](np.float32(0), x, y), n)
    axpy[blocks, BLOCK](np.float32(2), x, y)
    assert (y == 2 * x + 1).all()
    print(f"axpy: {rate:.0f} threads a second")

    blocks = 4
    n = blocks * BLOCK
    x = np.arange(n, dtype=np.float32)
    y = np.zeros_like(x)
    rate = threads_a_second(lambda: reverse[blocks, BLOCK](x, y), n)
    assert (y == x.reshape(blocks, BLOCK)[:, ::-1].ravel()).all()
    print(f"barrier: {rate:.0f} threads a second")


main()
