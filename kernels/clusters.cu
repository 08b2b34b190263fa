// Clusters of blocks, which read each other's shared memory.
// nvcc arch: sm_90

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Four values a block: the blocks of its cluster along x, y and z, and its rank among them.
extern "C" __global__ void cluster_shape(unsigned* out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    dim3 dims = cg::this_cluster().dim_blocks();
    out += 4 * block;
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        out[0] = dims.x;
        out[1] = dims.y;
        out[2] = dims.z;
        out[3] = cg::this_cluster().block_rank();
    }
}

// y[i] is what the same thread of the next block of the cluster has of x, by way of that block's shared memory.
__device__ void from_next(const int* x, int* y) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = x[i];
    cluster.sync();
    unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    y[i] = cluster.map_shared_rank(own, next)[threadIdx.x];
    // No block ends while another reads its shared memory.
    cluster.sync();
}

// In clusters of any size; an int of dynamic shared memory a thread.
extern "C" __global__ void ring(const int* x, int* y) { from_next(x, y); }

// In clusters of two, whatever the launch says.
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(const int* x, int* y) { from_next(x, y); }

// In clusters of at most four.
extern "C" __global__ void __launch_bounds__(128, 1, 4) quad(const int* x, int* y) { from_next(x, y); }

// In clusters of two blocks of 64 threads, of which the driver counts the clusters.
extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) counted_pair(const int* x, int* y) { from_next(x, y); }

// In clusters of two by two blocks, counted likewise. One more for each block that runs, and where it is: the blocks of the grid and
// the clusters, along x and y.
extern "C" __global__ void __block_size__((8, 4, 1), (2, 2, 1)) counted_square(unsigned* runs, unsigned* shape) {
    if (threadIdx.x + threadIdx.y == 0) {
        atomicAdd(&runs[blockIdx.y * gridDim.x + blockIdx.x], 1u);
        shape[0] = gridDim.x;
        shape[1] = gridDim.y;
        shape[2] = cg::this_grid().dim_clusters().x;
        shape[3] = cg::this_grid().dim_clusters().y;
    }
}

// Of blocks of 32 threads, which are clusters of one.
extern "C" __global__ void __block_size__((32, 1, 1)) counted_blocks(unsigned* runs) {
    if (threadIdx.x == 0) {
        atomicAdd(&runs[blockIdx.x], 1u);
    }
}
