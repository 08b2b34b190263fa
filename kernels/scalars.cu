// Parameters of every scalar and vector kind, parameter lists of every length, and kernels which only cost a launch.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Writes a value's bytes at `slot` of an array of 8- or 16-byte slots, which must be aligned to a slot.
template <int slot_size, class T>
__device__ void put(unsigned char* out, int slot, T value) {
    *reinterpret_cast<T*>(out + slot_size * slot) = value;
}

// One scalar of each kind, each into its 8-byte slot of out (15 slots, 120 bytes).
extern "C" __global__ void echo_scalars(bool b, signed char i8, short i16, int i32, long long i64, unsigned char u8,
                                        unsigned short u16, unsigned u32, unsigned long long u64, size_t size, float f32,
                                        double f64, __half f16, __nv_bfloat16 bf16, const float* pointer,
                                        unsigned char* out) {
    put<8>(out, 0, b);
    put<8>(out, 1, i8);
    put<8>(out, 2, i16);
    put<8>(out, 3, i32);
    put<8>(out, 4, i64);
    put<8>(out, 5, u8);
    put<8>(out, 6, u16);
    put<8>(out, 7, u32);
    put<8>(out, 8, u64);
    put<8>(out, 9, size);
    put<8>(out, 10, f32);
    put<8>(out, 11, f64);
    put<8>(out, 12, f16);
    put<8>(out, 13, bf16);
    put<8>(out, 14, pointer);
}

// One vector of each kind, each into its 16-byte slot of out (21 slots, 336 bytes).
extern "C" __global__ void echo_vectors(char2 c2, char4 c4, uchar4 uc4, short2 s2, short4 s4, ushort2 us2, int2 i2,
                                        int3 i3, int4 i4, uint2 u2, uint3 u3, uint4 u4, float2 f2, float3 f3, float4 f4,
                                        longlong2 l2, ulonglong2 ul2, double2 d2, __half2 h2, __nv_bfloat162 b2, dim3 d3,
                                        unsigned char* out) {
    put<16>(out, 0, c2);
    put<16>(out, 1, c4);
    put<16>(out, 2, uc4);
    put<16>(out, 3, s2);
    put<16>(out, 4, s4);
    put<16>(out, 5, us2);
    put<16>(out, 6, i2);
    put<16>(out, 7, i3);
    put<16>(out, 8, i4);
    put<16>(out, 9, u2);
    put<16>(out, 10, u3);
    put<16>(out, 11, u4);
    put<16>(out, 12, f2);
    put<16>(out, 13, f3);
    put<16>(out, 14, f4);
    put<16>(out, 15, l2);
    put<16>(out, 16, ul2);
    put<16>(out, 17, d2);
    put<16>(out, 18, h2);
    put<16>(out, 19, b2);
    put<16>(out, 20, d3);
}

// out[i] = (a[i] == b[i]), or its negation.
extern "C" __global__ void all_eq(const float* a, const float* b, int n, bool invert, bool* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (a[i] == b[i]) != invert;
}

// No parameters, no effect.
extern "C" __global__ void nothing() {}

// out[i] = x[i], or -1 where x is null.
extern "C" __global__ void maybe(const float* x_or_null, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x_or_null ? x_or_null[i] : -1.0f;
}

// y = alpha * (a + b + c + d + e + f + g), summed from left to right: ten parameters, all used.
extern "C" __global__ void many10(const float* a, const float* b, const float* c, const float* d, const float* e,
                                  const float* f, const float* g, float* y, float alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * (a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]);
}

// No effect: what a launch without parameters costs.
extern "C" __global__ void empty0() {}

// No effect: what a launch with two arrays and two scalars costs.
extern "C" __global__ void empty4(const float* x, float* y, float a, int n) {}

// No effect: what a launch with eight arrays and two scalars costs.
extern "C" __global__ void empty10(const float* a, const float* b, const float* c, const float* d, const float* e,
                                   const float* f, const float* g, float* y, float alpha, int n) {}

// No effect: what a launch with ten arrays and two scalars costs.
extern "C" __global__ void empty12(const float* a, const float* b, const float* c, const float* d, const float* e,
                                   const float* f, const float* g, const float* h, const float* i, float* y, float alpha,
                                   int n) {}

struct Big {
    unsigned value[2048];
};

// out[0] = b.value[i]: more bytes of parameters (8 KiB) than launches took before CUDA 12.1.
extern "C" __global__ void big_param(const __grid_constant__ Big b, unsigned* out, unsigned i) { out[0] = b.value[i]; }
