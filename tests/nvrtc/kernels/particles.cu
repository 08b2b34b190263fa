#include <twice.cuh>
#include "settings.cuh"

namespace physics {

struct Particle {
    float x, y;
    int id;
};

// Moves those of even number.
template <class T> __global__ void drift(T* all, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && all[i].id % EVERY == 0) all[i].x += twice(by);
}

}

template <class T, int N> __global__ void fill(T* y, T value, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = value + N;
}

__global__ void plain(const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = twice(x[i]);
}
