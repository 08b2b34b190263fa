// What the block-wide algorithms of CUB compute, compared with the same in Rust.
#include <cub/cub.cuh>

extern "C" __global__ void block_reduce(const int* in, int* out) {
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ typename Reduce::TempStorage temp;
    int sum = Reduce(temp).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
extern "C" __global__ void block_scan(const int* in, int* out) {
    typedef cub::BlockScan<int, 128> Scan;
    __shared__ typename Scan::TempStorage temp;
    int v[4], at = threadIdx.x * 4;
    for (int k = 0; k < 4; ++k) v[k] = in[at + k];
    Scan(temp).ExclusiveSum(v, v);
    for (int k = 0; k < 4; ++k) out[at + k] = v[k];
}
extern "C" __global__ void block_sort(const unsigned* in, unsigned* out) {
    typedef cub::BlockRadixSort<unsigned, 128, 4> Sort;
    __shared__ typename Sort::TempStorage temp;
    unsigned v[4];
    for (int k = 0; k < 4; ++k) v[k] = in[threadIdx.x * 4 + k];
    Sort(temp).Sort(v);
    for (int k = 0; k < 4; ++k) out[threadIdx.x * 4 + k] = v[k];
}
extern "C" __global__ void block_histogram(const unsigned char* in, unsigned* out) {
    typedef cub::BlockHistogram<unsigned char, 128, 4, 64> Histogram;
    __shared__ typename Histogram::TempStorage temp;
    __shared__ unsigned bins[64];
    unsigned char v[4];
    for (int k = 0; k < 4; ++k) v[k] = in[threadIdx.x * 4 + k];
    Histogram(temp).Histogram(v, bins);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}
extern "C" __global__ void warp_scan(const int* in, int* out) {
    typedef cub::WarpScan<int> Scan;
    __shared__ typename Scan::TempStorage temp[4];
    int v;
    Scan(temp[threadIdx.x / 32]).InclusiveSum(in[threadIdx.x], v);
    out[threadIdx.x] = v;
}
extern "C" __global__ void block_exchange(const int* in, int* out) {
    typedef cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE> Store;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } temp;
    int v[4];
    Load(temp.load).Load(in, v);
    __syncthreads();
    for (int k = 0; k < 4; ++k) v[k] = v[k] * 10 + k;
    Store(temp.store).Store(out, v);
}
