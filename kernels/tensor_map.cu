// Kernels that copy tiles by tensor maps.
// nvcc arch: sm_90

#include <cstdint>

// As in cuda.h.
struct __align__(64) CUtensorMap {
    uint64_t opaque[16];
};

constexpr uint32_t ROWS = 8;
constexpr uint32_t COLUMNS = 32;
constexpr uint32_t BYTES = ROWS * COLUMNS * sizeof(float);

__device__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier that waits for so many bytes.
__device__ uint32_t expect(uint32_t bytes) {
    __shared__ alignas(8) uint64_t barrier;
    uint32_t at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
    }
    return at;
}

// Every thread waits until they came.
__device__ void wait(uint32_t barrier) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "wait: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
        "@!done bra wait;\n"
        "}\n" ::"r"(barrier)
        : "memory");
}

// The tile at (row, column), to shared memory; every thread waits for it.
__device__ void load(const CUtensorMap* map, float* tile, int32_t row, int32_t column) {
    uint32_t at = expect(BYTES);
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                "r"(shared_address(tile)),
            "l"(map), "r"(column), "r"(row), "r"(at)
            : "memory");
    }
    wait(at);
}

// From shared memory to the tile at (row, column).
__device__ void store(const CUtensorMap* map, const float* tile, int32_t row, int32_t column) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                     "r"(column), "r"(row), "r"(shared_address(tile))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// out ← the tile of 8 x 32 at (row, column); it begins where the pattern of every swizzle does
extern "C" __global__ void load_tile(const __grid_constant__ CUtensorMap map, float* out, int32_t row, int32_t column) {
    __shared__ alignas(1024) float tile[ROWS * COLUMNS];
    load(&map, tile, row, column);
    for (uint32_t i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
        out[i] = tile[i];
    }
}

// the tile of 8 x 32 at (row, column) ← value
extern "C" __global__ void fill_tile(float value, const __grid_constant__ CUtensorMap map, int32_t row, int32_t column) {
    __shared__ alignas(128) float tile[ROWS * COLUMNS];
    for (uint32_t i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
        tile[i] = value;
    }
    store(&map, tile, row, column);
}

// to ← a · from, tile by tile: a block for each tile of 8 x 32
extern "C" __global__ void scale_tiles(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                                       float a) {
    __shared__ alignas(128) float tile[ROWS * COLUMNS];
    int32_t row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS;
    load(&from, tile, row, column);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
        tile[i] *= a;
    }
    store(&to, tile, row, column);
}

constexpr uint32_t PIXELS = 16;
constexpr uint32_t CHANNELS = 8;

// out ← 8 channels of the 16 pixels from (image, row, column) on, moved by (down, right)
extern "C" __global__ void load_pixels(const __grid_constant__ CUtensorMap map, float* out, int32_t image, int32_t row,
                                       int32_t column, uint16_t down, uint16_t right) {
    __shared__ alignas(128) float tile[PIXELS * CHANNELS];
    uint32_t at = expect(PIXELS * CHANNELS * sizeof(float));
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(tile)),
            "l"(&map), "r"(0), "r"(column), "r"(row), "r"(image), "r"(at), "h"(right), "h"(down)
            : "memory");
    }
    wait(at);
    for (uint32_t i = threadIdx.x; i < PIXELS * CHANNELS; i += blockDim.x) {
        out[i] = tile[i];
    }
}

// 8 channels of the 16 pixels from (image, row, column) on ← value
extern "C" __global__ void fill_pixels(float value, const __grid_constant__ CUtensorMap map, int32_t image, int32_t row,
                                       int32_t column) {
    __shared__ alignas(128) float tile[PIXELS * CHANNELS];
    for (uint32_t i = threadIdx.x; i < PIXELS * CHANNELS; i += blockDim.x) {
        tile[i] = value;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map),
                     "r"(0), "r"(column), "r"(row), "r"(image), "r"(shared_address(tile))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// out ← the slice of 4 channels of the tile of 2 x 4 pixels at (image, slice, row, column)
extern "C" __global__ void load_slice(const __grid_constant__ CUtensorMap map, float* out, int32_t image, int32_t slice,
                                      int32_t row, int32_t column) {
    __shared__ alignas(128) float tile[2 * 4 * 4];
    uint32_t at = expect(sizeof(tile));
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(tile)),
            "l"(&map), "r"(column), "r"(row), "r"(slice), "r"(image), "r"(at)
            : "memory");
    }
    wait(at);
    for (uint32_t i = threadIdx.x; i < 2 * 4 * 4; i += blockDim.x) {
        out[i] = tile[i];
    }
}
