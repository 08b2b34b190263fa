// Kernels that use variables of their module.

#include <cstdint>

struct Window {
    int32_t first;
    double gain;
};

__constant__ float taps[5];
__constant__ float scale = 1.0f;
__constant__ Window window;
__device__ const float ramp[4] = {0.0f, 1.0f, 2.0f, 3.0f};
__device__ float4 tiles[2];
__device__ uint64_t hits;
__device__ bool marks[4];
namespace math {
__device__ int32_t offset = 7;
}

__device__ __noinline__ int32_t offset_of(int32_t index) {
    return math::offset + index;
}

__device__ void wait(int64_t cycles) {
    int64_t start = clock64();
    while (clock64() - start < cycles) {
    }
}

// y ← scale · (taps * x), with zeros beyond the ends
extern "C" __global__ void filter(const float* x, float* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float sum = 0.0f;
    for (int32_t tap = 0; tap < 5; ++tap) {
        int64_t at = int64_t(i) + tap - 2;
        if (at >= 0 && at < n) {
            sum += taps[tap] * x[at];
        }
    }
    y[i] = scale * sum;
}

// y ← taps, after so many cycles
extern "C" __global__ void slow_taps(float* y, int64_t cycles) {
    wait(cycles);
    y[threadIdx.x] = taps[threadIdx.x];
}

// hits ← value, after so many cycles
extern "C" __global__ void slow_hits(uint64_t value, int64_t cycles) {
    wait(cycles);
    hits = value;
}

// y ← x and taps, element by element
extern "C" __global__ void add_taps(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x] + taps[threadIdx.x];
}

// hits ← hits + the first of x
extern "C" __global__ void add_to_hits(const uint64_t* x) {
    hits += *x;
}

// y ← gain, from the window's first element on
extern "C" __global__ void fill_window(double* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = int32_t(i) >= window.first ? window.gain : 0.0;
    }
}

// y ← ramp
extern "C" __global__ void copy_ramp(float* y) {
    y[threadIdx.x] = ramp[threadIdx.x];
}

// y ← tiles, element by element
extern "C" __global__ void copy_tiles(float* y) {
    float4 tile = tiles[threadIdx.x];
    y[4 * threadIdx.x] = tile.x;
    y[4 * threadIdx.x + 1] = tile.y;
    y[4 * threadIdx.x + 2] = tile.z;
    y[4 * threadIdx.x + 3] = tile.w;
}

// hits ← hits + 1 for each element above the limit
extern "C" __global__ void count_above(const float* x, uint32_t n, float limit) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > limit) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&hits), 1ull);
    }
}

// out ← hits
extern "C" __global__ void copy_hits(uint64_t* out) {
    *out = hits;
}

// y ← i + offset
extern "C" __global__ void copy_offset(int32_t* y) {
    y[threadIdx.x] = offset_of(threadIdx.x);
}

// The bytes of marks ← byte
extern "C" __global__ void mark(uint8_t byte) {
    reinterpret_cast<uint8_t*>(marks)[threadIdx.x] = byte;
}

// y ← a · y, without any variable
extern "C" __global__ void scale_by(float* y, float a, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] *= a;
    }
}
