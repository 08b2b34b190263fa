// What a launch's grid and block look like from inside.

// Twelve values a thread, threads in x, y, z order within blocks in x, y, z order:
// gridDim, blockDim, blockIdx and threadIdx, each as x, y, z.
extern "C" __global__ void where_am_i(unsigned* out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out += 12 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
    const uint3 seen[4] = {{gridDim.x, gridDim.y, gridDim.z}, {blockDim.x, blockDim.y, blockDim.z}, blockIdx, threadIdx};
    for (int i = 0; i < 4; ++i) {
        out[3 * i] = seen[i].x;
        out[3 * i + 1] = seen[i].y;
        out[3 * i + 2] = seen[i].z;
    }
}

// y = y + v by a grid-stride loop: any grid covers all n elements.
extern "C" __global__ void grid_stride(float* y, float v, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] += v;
}

// out[row * width + col] = row * 1000 + col over a two-dimensional grid, x along the columns.
extern "C" __global__ void fill_2d(int* out, int width, int height) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < width && row < height) out[row * width + col] = row * 1000 + col;
}

// out[0] grows by one for each thread of the grid.
extern "C" __global__ void count_threads(unsigned long long* out) { atomicAdd(out, 1ull); }
