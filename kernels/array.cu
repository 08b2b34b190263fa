// Kernels that read and write CUDA arrays, as textures and as surfaces.

#include <cstdint>

// image[y][x] ← a·x + b·y, as a surface, whose first coordinate counts bytes
extern "C" __global__ void ramp(cudaSurfaceObject_t image, uint32_t width, uint32_t height, float a, float b) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) {
        uint32_t x = i % width, y = i / width;
        surf2Dwrite(a * float(x) + b * float(y), image, int(x * sizeof(float)), int(y));
    }
}

// as `ramp`, after so many cycles
extern "C" __global__ void late_ramp(cudaSurfaceObject_t image, uint32_t width, uint32_t height, float a, float b, int64_t cycles) {
    int64_t start = clock64();
    while (clock64() - start < cycles) {
    }
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) {
        uint32_t x = i % width, y = i / width;
        surf2Dwrite(a * float(x) + b * float(y), image, int(x * sizeof(float)), int(y));
    }
}

// out[i] ← element i of a row, as a surface; zeros beyond its end
extern "C" __global__ void read_row(cudaSurfaceObject_t image, float* out, uint32_t row, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = surf2Dread<float>(image, int(i * sizeof(float)), int(row), cudaBoundaryModeZero);
    }
}

// to[z][y][x] ← from[z][y][x] with its channels turned around
extern "C" __global__ void reverse_channels(cudaSurfaceObject_t from, cudaSurfaceObject_t to, uint32_t width, uint32_t height, uint32_t depth) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height * depth) {
        int x = int(i % width), y = int(i / width % height), z = int(i / width / height);
        uchar4 v = surf3Dread<uchar4>(from, x * int(sizeof(uchar4)), y, z);
        surf3Dwrite(make_uchar4(v.w, v.z, v.y, v.x), to, x * int(sizeof(uchar4)), y, z);
    }
}

// layers[layer][x] += by
extern "C" __global__ void add_to_layer(cudaSurfaceObject_t layers, uint32_t layer, uint32_t width, uint32_t by) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) {
        int at = int(x * sizeof(uint32_t));
        uint32_t v = surf1DLayeredread<uint32_t>(layers, at, int(layer));
        surf1DLayeredwrite(v + by, layers, at, int(layer));
    }
}

// out[i] ← the image at (x[i], y[i])
extern "C" __global__ void sample(cudaTextureObject_t image, const float* x, const float* y, float* out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex2D<float>(image, x[i], y[i]);
    }
}

// out[i] ← the line at x[i]
extern "C" __global__ void sample_line(cudaTextureObject_t line, const float* x, float* out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex1D<float>(line, x[i]);
    }
}

// out[i] ← the volume at (at[3i], at[3i+1], at[3i+2])
extern "C" __global__ void sample_volume(cudaTextureObject_t volume, const float* at, float* out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex3D<float>(volume, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
    }
}

// out[i] ← a layer at (x[i], y[i])
extern "C" __global__ void sample_layer(cudaTextureObject_t layers, const float* x, const float* y, float* out, uint32_t layer, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex2DLayered<float>(layers, x[i], y[i], int(layer));
    }
}

// out[i] ← the cube in direction (at[3i], at[3i+1], at[3i+2])
extern "C" __global__ void sample_cube(cudaTextureObject_t cube, const float* at, float* out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = texCubemap<float>(cube, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
    }
}

// out[i] ← the first channels of the four elements around (x[i], y[i]), and at[i] ← all four of the one there
extern "C" __global__ void sample_around(cudaTextureObject_t image, const float* x, const float* y, float4* out, float4* at, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex2Dgather<float4>(image, x[i], y[i], 0);
        at[i] = tex2D<float4>(image, x[i], y[i]);
    }
}
