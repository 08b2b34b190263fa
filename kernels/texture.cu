// Kernels that read textures.

#include <cstdint>

// y[i] ← x[index[i]], or zero beyond the ends
extern "C" __global__ void gather(cudaTextureObject_t x, const int32_t* index, float* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = tex1Dfetch<float>(x, index[i]);
    }
}

// y[i] ← the first component of x[i] plus twice its second
extern "C" __global__ void pairs(cudaTextureObject_t x, uint32_t* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uint2 pair = tex1Dfetch<uint2>(x, int(i));
        y[i] = pair.x + 2 * pair.y;
    }
}

// out[i] ← the image at (x[i], y[i])
extern "C" __global__ void sample(cudaTextureObject_t image, const float* x, const float* y, float* out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex2D<float>(image, x[i], y[i]);
    }
}
