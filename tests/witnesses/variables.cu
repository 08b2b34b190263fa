#include "variables.cuh"

extern "C" __global__ void use(float* y) {
    __device__ static int calls;
    unsigned i = threadIdx.x;
    y[i] = taps[i] + windows[i].gain + limit + marks[i] + wide[i] + ramp[i] + filters::hidden[i];
    atomicAdd(&hits, 1u);
    atomicAdd(&calls, 1);
    filters::hidden[i] = i;
}
