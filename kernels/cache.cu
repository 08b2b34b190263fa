// Kernels whose times show what is in a cache.

// Follows next[at] so many times from `start`, `warm` times before the clock is read; one thread. out: the cycles of the
// steps that were timed, and where they led.
extern "C" __global__ void chase(const unsigned* next, unsigned start, unsigned warm, unsigned steps, unsigned* out) {
    unsigned at = start;
    for (unsigned i = 0; i < warm; i++) at = next[at];
    long long before = clock64();
    for (unsigned i = 0; i < steps; i++) at = next[at];
    long long after = clock64();
    out[0] = (unsigned)(after - before);
    out[1] = at;
}

// total = the sum of x, n elements, modulo 2^32; any grid.
extern "C" __global__ void sum(const unsigned* x, unsigned long long n, unsigned* total) {
    unsigned part = 0;
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n; i += stride) part += x[i];
    atomicAdd(total, part);
}
