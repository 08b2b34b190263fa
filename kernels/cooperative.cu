// Kernels whose blocks wait for each other: they need a cooperative grid.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// a rotated by `rounds` elements, in so many steps of one; b is what the steps alternate with, and holds the result if
// rounds is odd. Each step reads what other blocks wrote in the one before.
extern "C" __global__ void rotate(int* a, int* b, int n, int rounds) {
    cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < rounds; ++round) {
        for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) b[i] = a[(i + 1) % n];
        grid.sync();
        int* other = a;
        a = b;
        b = other;
    }
}

// out[0] is the sum of x: each block adds up a part, then one adds up the parts.
extern "C" __global__ void grid_sum(const float* x, float* parts, float* out, int n) {
    cg::grid_group grid = cg::this_grid();
    __shared__ float sums[32];
    float sum = 0.0f;
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += sums[warp];
        parts[blockIdx.x] = sum;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        sum = 0.0f;
        for (unsigned block = 0; block < gridDim.x; ++block) sum += parts[block];
        out[0] = sum;
    }
}
