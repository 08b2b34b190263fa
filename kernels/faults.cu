// Kernels that fail: each breaks its context when its condition is met.

#include <cassert>

// Stops with a trap in the thread of this index; the others write their index.
extern "C" __global__ void trap_now(int* y, int index) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == index) __trap();
    y[i] = i;
}

// Fails its assertion where y[i] is not 42.
extern "C" __global__ void assert_fails(const int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) assert(y[i] == 42);
}

// Stores to y[i], whatever i is.
extern "C" __global__ void out_of_bounds(float* y, long long i) { y[i] = 1.0f; }

// Reads y[i], whatever i is, into out[0].
extern "C" __global__ void read_out_of_bounds(const float* y, long long i, float* out) { out[0] = y[i]; }

// Stores 16 bytes at so many bytes into y: misaligned unless a multiple of 16.
extern "C" __global__ void misaligned(unsigned char* y, long long bytes) {
    *reinterpret_cast<float4*>(y + bytes) = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
}
