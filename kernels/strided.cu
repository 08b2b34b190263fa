// Arrays in their dimensions: a transposed, sliced, flipped or broadcast array as it is.

#include "../runtime/include/gridcall.cuh"

using gridcall::strided;

// y[i] = a * x[i] + y[i].
extern "C" __global__ void saxpy_1d(float a, strided<const float, 1> x, strided<float, 1> y) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < y.extent(0)) y(i) = a * x(i) + y(i);
}

// out[i][j] = in[i][j], j along the grid's x and i along its y.
extern "C" __global__ void copy_2d(strided<const float, 2> in, strided<float, 2> out) {
    long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    long long i = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (i < out.extent(0) && j < out.extent(1)) out(i, j) = in(i, j);
}

// out[i][j] = a[i][j] + b[i][j].
extern "C" __global__ void add_2d(strided<const float, 2> a, strided<const float, 2> b, strided<float, 2> out) {
    long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    long long i = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (i < out.extent(0) && j < out.extent(1)) out(i, j) = a(i, j) + b(i, j);
}

// out[i] is the sum over the last dimension of x[i], for integers in three dimensions laid out as one.
extern "C" __global__ void sum_last(strided<const int, 3> x, int* out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    int sum = 0;
    for (long long k = 0; k < x.extent(2); ++k) sum += x(at / x.extent(1), at % x.extent(1), k);
    out[at] = sum;
}
