// Kernels that use what compilers rarely emit: checked against the same computation in Rust.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;

extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d, __half2* h, __nv_bfloat16* b) {
    int t = threadIdx.x;
    atomicAdd(&i[0], t); atomicSub(&i[1], t); atomicMin(&i[2], t - 5); atomicMax(&i[3], t - 5); atomicExch(&i[4], 7); atomicOr(&i[5], 1 << t); atomicXor(&i[6], t * 3); atomicAnd(&i[7], ~(1 << t));
    atomicInc(&u[0], 20); atomicDec(&u[1], 20); atomicMax(&u[2], 4000000000u - t); atomicMin(&u[3], 4000000000u - t);
    atomicAdd(&l[0], 1ull << 33); atomicMax(&l[1], (unsigned long long)t << 40); atomicCAS(&l[2], 0ull, 5ull);
    atomicAdd(&f[0], 0.5f); atomicAdd(&d[0], 0.25); atomicAdd(h, __floats2half2_rn(1.0f, 0.5f)); atomicAdd(b, __float2bfloat16(1.0f));
}
extern "C" __global__ void shared_atomics(int* out) {
    __shared__ int s[8]; __shared__ float f; __shared__ unsigned long long l;
    if (threadIdx.x < 8) s[threadIdx.x] = 0;
    if (threadIdx.x == 0) { f = 0.f; l = 0; }
    __syncthreads();
    atomicAdd(&s[threadIdx.x % 8], threadIdx.x); atomicAdd(&f, 1.5f); atomicAdd(&l, 1ull << 32);
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 0) { out[8] = (int)f; out[9] = (int)(l >> 32); }
}
extern "C" __global__ void pipelined(const float4* in, float* out, int stages) {
    __shared__ float4 tile[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], &in[t], 16); __pipeline_commit();
    float sum = 0.f;
    for (int k = 0; k < stages; ++k) {
        if (k + 1 < stages) __pipeline_memcpy_async(&tile[(k + 1) & 1][t], &in[(k + 1) * 64 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = tile[k & 1][63 - t];
        sum += v.x + v.y * 2 + v.z * 3 + v.w * 4;
        __syncthreads();
    }
    out[t] = sum;
}
extern "C" __global__ void missing_wait(const float4* in, float* out) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], 16); __pipeline_commit();
    __syncthreads();
    out[t] = tile[t].x;
}
extern "C" __global__ void cluster_sum(const int* in, int* out) {
    __shared__ int part;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) part = in[blockIdx.x];
    cluster.sync();
    int sum = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&part, r) * (r + 1);
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = sum * 100 + cluster.block_rank() * 10 + cluster.num_blocks();
}
extern "C" __global__ void cluster_write(int* out) {
    __shared__ int box[32];
    auto cluster = cg::this_cluster();
    int other = (cluster.block_rank() + 1) % cluster.num_blocks();
    cluster.map_shared_rank(box, other)[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
    cluster.sync();
    out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];
}
extern "C" __global__ void block_barrier(int* out) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier bar; __shared__ int s[64];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        s[threadIdx.x] = threadIdx.x * (k + 1);
        bar.arrive_and_wait();
        out[threadIdx.x] = s[63 - threadIdx.x];
        bar.arrive_and_wait();
    }
}
extern "C" __global__ void warp_things(const int* in, unsigned* out) {
    int t = threadIdx.x, v = in[t];
    out[t] = __match_any_sync(~0u, v % 4);
    out[32 + t] = __reduce_add_sync(~0u, v);
    out[64 + t] = __reduce_max_sync(~0u, v);
    out[96 + t] = __popc(__activemask()) + __ballot_sync(~0u, v & 1);
    int all; out[128 + t] = __match_all_sync(~0u, 3, &all) + all;
    unsigned odd = __ballot_sync(~0u, t & 1);
    if (t & 1) out[160 + t] = __shfl_sync(odd, v, t ^ 2) + __reduce_add_sync(odd, 1); else out[160 + t] = 9;
    auto active = cg::coalesced_threads(); out[192 + t] = active.thread_rank() + active.size();
}
extern "C" __global__ void bytes_and_vectors(const uchar4* c, const short2* s, const double2* d, int* out) {
    __shared__ unsigned char b[128]; __shared__ short h[64];
    int t = threadIdx.x;
    uchar4 v = c[t]; b[t * 4] = v.x; b[t * 4 + 1] = v.y; b[t * 4 + 2] = v.z; b[t * 4 + 3] = v.w;
    short2 w = s[t]; h[2 * t] = w.x; h[2 * t + 1] = w.y;
    __syncwarp();
    double2 e = d[t];
    out[t] = b[127 - t] + b[t] * 2 + h[63 - t] * 3 + h[t] + (int)(e.x * e.y) + __dp4a(*(int*)&v, 0x01020304, 5) + (int)__vadd2(t, 65537);
}
extern "C" __global__ void switch_table(const int* in, int* out) {
    int t = threadIdx.x, r;
    switch (in[t]) { case 0: r = t * 3; break; case 1: r = t ^ 5; break; case 2: r = out[t] + 1; break; case 3: r = t / 3; break; case 4: r = t % 7; break; case 5: r = -t; break; case 6: r = t << 4; break; default: r = 99; }
    out[t] = r;
}
extern "C" __global__ void nested_loops(const int* n, int* out) {
    int sum = 0;
    for (int i = 0; i < n[threadIdx.x]; ++i) { if (i % 3 == 1) continue; for (int j = i; j > 0; j /= 2) { if (j == 5) break; sum += j * __popc(i); } if (sum > 5000) return; }
    out[threadIdx.x] = sum;
}
using namespace nvcuda;
extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 32, 8, 16, int> fc;
    wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::load_matrix_sync(fc, c, 8, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}
extern "C" __global__ void wmma_shared(const half* a, const half* b, half* c) {
    __shared__ __align__(32) half sa[256], sb[256];
    for (int i = threadIdx.x; i < 256; i += 32) { sa[i] = a[i]; sb[i] = b[i]; }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, half> fc;
    wmma::fill_fragment(fc, 1.0f); wmma::load_matrix_sync(fa, sa, 16); wmma::load_matrix_sync(fb, sb, 16); wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] * __float2half(2.0f);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_col_major);
}
extern "C" __global__ void ldmatrix_transposed(const unsigned short* in, unsigned* out) {
    __shared__ __align__(16) unsigned short s[256];
    for (int i = threadIdx.x; i < 256; i += 32) s[i] = in[i];
    __syncwarp();
    unsigned r[4], address = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = r[i];
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0,%1,%2,%3};" :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(address) : "memory");
    __syncwarp();
    for (int i = 0; i < 4; ++i) out[128 + threadIdx.x * 4 + i] = ((unsigned*)s)[threadIdx.x * 4 + i];
}
extern "C" __global__ void spaces(int* out) {
    __shared__ int s; int l = threadIdx.x; int* p = &l; s = 3; __syncwarp();
    out[threadIdx.x] = __isGlobal(out) + 2 * __isShared(&s) + 4 * __isLocal(p) + 8 * __isShared(out) + 16 * __isGlobal(p);
    int* q = threadIdx.x & 1 ? &s : p;
    if (threadIdx.x & 1) { __nanosleep(10); }
    out[32 + threadIdx.x] = *q;
}
