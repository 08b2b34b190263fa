#include <cassert>
#include <cstdio>
extern "C" __global__ void past_the_end(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 1.0f;
}
extern "C" __global__ void misaligned(char* y, int by) {
    *(float*)(y + threadIdx.x * 4 + (threadIdx.x == 5 ? by : 0)) = 1.0f;
}
extern "C" __global__ void race(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void no_race(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void race_write(int* out) {
    __shared__ int s[1];
    s[0] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[0];
}
extern "C" __global__ void same_write(int* out) {
    __shared__ int s[1];
    s[0] = 7;
    __syncthreads();
    out[threadIdx.x] = s[0];
}
extern "C" __global__ void warp_race(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void warp_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void missing_second(int* out) {
    __shared__ int s[64];
    for (int k = 0; k < 3; ++k) {
        s[threadIdx.x] = threadIdx.x + k;
        __syncthreads();
        out[threadIdx.x] += s[63 - threadIdx.x];
    }
}
extern "C" __global__ void uninit_shared(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void uninit_global(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void divergent(int* out, int n) {
    if (threadIdx.x < n) __syncthreads();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void divergent_loop(int* out) {
    for (int k = 0; k < threadIdx.x % 3; ++k) { out[threadIdx.x] += k; __syncthreads(); }
    out[threadIdx.x] = 2;
}
extern "C" __global__ void early_return(int* out, int n) {
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i >= n) return;
    s[i] = i;
    __syncthreads();
    out[i] = s[n - 1 - i];
}
extern "C" __global__ void bad_mask(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_sync(0xffff0000u, v, 3);
    out[threadIdx.x] = v;
}
extern "C" __global__ void exited(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x >= 16) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, v, 8);
}
extern "C" __global__ void waiting(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_sync(0xffffffffu, v, 3); else __syncthreads();
    out[threadIdx.x] = v;
}
extern "C" __global__ void trap(int which) { if (threadIdx.x == which) __trap(); }
extern "C" __global__ void asserts(const int* x) { assert(x[threadIdx.x] != 13); }
extern "C" __global__ void endless(int* out) { volatile int* p = out; while (*p == 0) {} }
__device__ __noinline__ int deep(int n, int* out) { return n <= 0 ? out[0] : deep(n - 1, out + 1) + deep(n - 2, out) + 1; }
extern "C" __global__ void stack(int* out, int n) { out[0] = deep(n, out); }
extern "C" __global__ void shared_bounds(int* out, int at) {
    extern __shared__ int s[];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x == 7 ? at : threadIdx.x];
}
extern "C" __global__ void local_bounds(const int* idx, int* out) {
    int t[8];
    for (int i = 0; i < 8; ++i) t[i] = idx[i];
    out[threadIdx.x] = t[idx[threadIdx.x]];
}
extern "C" __global__ void spin_pair(int* flag, int* out) {
    if (blockIdx.x == 0) { while (atomicAdd(flag, 0) == 0) {} out[0] = 5; }
    else { out[1] = 6; __threadfence(); atomicExch(flag, 1); }
}
extern "C" __global__ void spin_lane(int* flag, int* out) {
    if (threadIdx.x == 0) { while (((volatile int*)flag)[0] == 0) {} out[0] = 5; }
    else if (threadIdx.x == 1) { atomicExch(flag, 1); }
}
extern "C" __global__ void lock(int* mutex, int* count) {
    for (int i = 0; i < 3; ++i) {
        bool done = false;
        while (!done) {
            if (atomicCAS(mutex, 0, 1) == 0) { *(volatile int*)count = *(volatile int*)count + 1; __threadfence(); atomicExch(mutex, 0); done = true; }
        }
    }
}
extern "C" __global__ void shared_flag(int* out) {
    __shared__ int data; __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 64) { data = 42; __threadfence_block(); atomicExch(&flag, 1); }
    if (threadIdx.x == 0) { while (atomicAdd(&flag, 0) == 0) {} __threadfence_block(); out[0] = data; }
}
extern "C" __global__ void global_race(int* x) { x[0] = blockIdx.x; }
extern "C" __global__ void global_atomic(int* x) { atomicAdd(x, 1); }
extern "C" __global__ void named(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 64) {
        s[threadIdx.x] = threadIdx.x;
        asm volatile("bar.sync 1, 64;");
        out[threadIdx.x] = s[63 - threadIdx.x];
    } else { out[threadIdx.x] = -1; }
}
extern "C" __global__ void producer(int* out) {
    __shared__ int s[32];
    if (threadIdx.x < 32) { s[threadIdx.x] = threadIdx.x; __threadfence_block(); asm volatile("bar.arrive 2, 64;"); }
    else { asm volatile("bar.sync 2, 64;"); out[threadIdx.x - 32] = s[63 - threadIdx.x]; }
}
extern "C" __global__ void votes(int* out) {
    int i = threadIdx.x;
    out[i] = __syncthreads_count(i % 3 == 0) + 1000 * __syncthreads_and(i >= 0) + 2000 * __syncthreads_or(i == 77);
}
extern "C" __global__ void print_all(const char* name, unsigned long long big) {
    if (threadIdx.x == 1) printf("%s %d %u %llx %c %5.2f %e %s%%\n", name, -3, 4u, big, 'q', 2.5, 1e10, "end");
}
