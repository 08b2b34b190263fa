// Kernels that set the conditions of graphs.

#include <cstdint>

// condition ← value
extern "C" __global__ void set_condition(cudaGraphConditionalHandle condition, uint32_t value) {
    cudaGraphSetConditional(condition, value);
}

// Counts left[0] down to 0, and the rounds that takes; goes on until it is 0.
extern "C" __global__ void count_down(cudaGraphConditionalHandle go_on, uint32_t* left, uint32_t* rounds) {
    rounds[0] += 1;
    left[0] -= 1;
    cudaGraphSetConditional(go_on, left[0]);
}

// One of Newton's steps towards the square root of a; goes on as long as it changes x[0] by more than rounding does.
extern "C" __global__ void newton(cudaGraphConditionalHandle go_on, double a, double* x, uint32_t* rounds) {
    double next = 0.5 * (x[0] + a / x[0]);
    double change = next - x[0];
    x[0] = next;
    rounds[0] += 1;
    cudaGraphSetConditional(go_on, change < -1e-15 * next || change > 1e-15 * next);
}

// One of Jacobi's steps towards the solution of 3·x[i] - x[i - 1] - x[i + 1] = b[i], with zeros beyond the ends.
extern "C" __global__ void jacobi(const float* b, const float* x, float* next, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float left = i > 0 ? x[i - 1] : 0.0f;
    float right = i < n - 1 ? x[i + 1] : 0.0f;
    next[i] = (b[i] + left + right) / 3.0f;
}

// Goes on as long as x and y differ anywhere by more than tolerance; counts rounds. One block.
extern "C" __global__ void differ(cudaGraphConditionalHandle go_on, const float* x, const float* y, float tolerance, uint32_t* rounds,
                                  uint32_t n) {
    int any = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        any |= fabsf(x[i] - y[i]) > tolerance;
    }
    any = __syncthreads_or(any);
    if (threadIdx.x == 0) {
        rounds[0] += 1;
        cudaGraphSetConditional(go_on, any);
    }
}

// All threads set the condition at the same time, which is not defined.
extern "C" __global__ void race(cudaGraphConditionalHandle condition) {
    cudaGraphSetConditional(condition, threadIdx.x);
}

// a ← 1 by one thread, b ← 1 by another.
extern "C" __global__ void set_both(cudaGraphConditionalHandle a, cudaGraphConditionalHandle b) {
    cudaGraphSetConditional(threadIdx.x == 0 ? a : b, 1);
}
