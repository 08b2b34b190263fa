// Shared memory, static and dynamic, and kernels whose block size is limited by a bound or by registers.

// The bytes of dynamic shared memory that the launch asked for.
__device__ unsigned dynamic_shared_bytes() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

// Fills s with its indices, then returns how many of them this thread finds in place, each written by another thread.
// Over a block these add up to count.
__device__ float fill_and_count(float* s, unsigned count) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) s[i] = float(i);
    __syncthreads();
    float found = 0.0f;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        unsigned other = count - 1 - i;
        if (s[other] == float(other)) found += 1.0f;
    }
    return found;
}

extern __shared__ float s[];

// y, one a thread, adds up over a block to the floats of dynamic shared memory; one static byte lies beside them.
extern "C" __global__ void tile(float* y) {
    __shared__ volatile unsigned char ready;
    if (threadIdx.x == 0) ready = 1;
    float found = fill_and_count(s, dynamic_shared_bytes() / sizeof(float));
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = ready ? found : -1.0f;
}

// As tile, with a static array of bytes whose every float is used too.
template <unsigned bytes>
__device__ void tile_beside(float* y) {
    __shared__ float fixed[bytes / sizeof(float)];
    float found = fill_and_count(fixed, bytes / sizeof(float));
    found += fill_and_count(s, dynamic_shared_bytes() / sizeof(float));
    y[blockIdx.x * blockDim.x + threadIdx.x] = found;
}

// y adds up to 4096 and the floats of dynamic memory: 32 KiB of it still fit the default limit of 48 KiB.
extern "C" __global__ void tile_static16(float* y) { tile_beside<16 * 1024>(y); }

// y adds up to 12288 and the floats of dynamic memory: any of it passes the default limit of 48 KiB.
extern "C" __global__ void tile_static48(float* y) { tile_beside<48 * 1024>(y); }

// y = y + 1, in blocks of at most 256 threads.
extern "C" __global__ void __launch_bounds__(256) bounded(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1.0f;
}

// y = y + 1, in blocks of at most 128 threads, four of which fit a multiprocessor.
extern "C" __global__ void __launch_bounds__(128, 4) bounded_min_blocks(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1.0f;
}

// Mixes 128 live accumulators: too many registers for a block of 1024 threads.
extern "C" __global__ void registers(const float* x, float* y, int rounds) {
    const int count = 128;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a[count];
#pragma unroll
    for (int k = 0; k < count; ++k) a[k] = x[i] + float(k);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < count; ++k) a[k] = a[k] * 0.5f + a[(k + 37) % count];
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < count; ++k) sum += a[k];
    y[i] = sum;
}

// out[b] is the sum of what block b covers of x: by shuffles in a warp, then over the warps through shared memory.
// Blocks are of whole warps.
extern "C" __global__ void reduce_sum(const float* x, float* out, int n) {
    __shared__ float warp_sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    float sum = i < n ? x[i] : 0.0f;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) warp_sums[warp] = sum;
    __syncthreads();

    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0) out[blockIdx.x] = sum;
    }
}
