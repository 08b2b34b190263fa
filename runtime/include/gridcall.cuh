// What gridcall passes by value: include this and take gridcall::strided in a kernel.
//
// A declaration `x: Strided<f32, 2>` is `gridcall::strided<const float, 2> x` here, and
// `y: StridedMut<f32, 2>` is `gridcall::strided<float, 2> y`.
#pragma once

namespace gridcall {

// An array in N dimensions, slowest first. Strides are in elements; they may be negative, and 0
// where an array that is read is broadcast.
template <typename T, int N>
struct strided {
    T* data;
    long long extents[N];
    long long strides[N];

    // The number of elements along a dimension.
    __host__ __device__ long long extent(int dimension) const { return extents[dimension]; }

    // The number of elements.
    __host__ __device__ long long size() const {
        long long size = 1;
        for (int dimension = 0; dimension < N; ++dimension) size *= extents[dimension];
        return size;
    }

    // The element at an index along each dimension: x(i, j).
    template <typename... Index>
    __host__ __device__ T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == N, "as many indices as dimensions");
        const long long at[] = {static_cast<long long>(index)...};
        long long offset = 0;
        for (int dimension = 0; dimension < N; ++dimension) offset += at[dimension] * strides[dimension];
        return data[offset];
    }
};

}  // namespace gridcall
