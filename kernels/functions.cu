// Functions of the device by their addresses, in variables and as parameters.

#include <cstdint>

typedef float (*Op)(float);
typedef float (*Fold)(float, float);

struct Line {
    float slope;
    double offset;
};
typedef double (*OnLine)(Line, float);
typedef bool (*Test)(int16_t, bool);
typedef void (*Count)(uint32_t*, uint64_t);

__device__ uint32_t calls;

__device__ float square(float x) {
    return x * x;
}

__device__ float halve(float x) {
    return 0.5f * x;
}

__device__ float counted(float x) {
    atomicAdd(&calls, 1u);
    return x + 1.0f;
}

// Its frame is larger than the stack that the driver gives a thread by default, 1 KiB.
__device__ float deep(float x) {
    volatile float frame[4096];
    for (int i = 0; i < 4096; ++i) {
        frame[i] = x + float(i);
    }
    return frame[int(x) & 4095];
}

__device__ float add(float a, float b) {
    return a + b;
}

__device__ double at(Line line, float x) {
    return line.slope * x + line.offset;
}

__device__ bool is_below(int16_t limit, bool strict) {
    return int16_t(threadIdx.x) < limit || (!strict && int16_t(threadIdx.x) == limit);
}

__device__ void count(uint32_t* counter, uint64_t by) {
    atomicAdd(counter, uint32_t(by));
}

__device__ Op op_square = square;
__device__ Op op_halve = halve;
__constant__ Op op_counted = counted;
__device__ Op op_deep = deep;
__device__ Op op_none;
// The host chooses.
__device__ Op op_chosen = square;
__device__ Fold fold_add = add;
__device__ OnLine on_line = at;
__constant__ Test test_below = is_below;
__device__ Count count_calls = count;
__device__ Op op_table[3] = {square, halve, square};

namespace math {
__device__ Op op = halve;
}

// y ← op(x)
extern "C" __global__ void map(Op op, const float* x, float* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op(x[i]);
    }
}

// y ← op(y), by a name that holds the types: _Z8map_in_.PFffEPfj
__global__ void map_in_place(Op op, float* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op(y[i]);
    }
}

// y ← x folded with y
extern "C" __global__ void zip(const float* x, float* y, uint32_t n, Fold fold) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = fold(x[i], y[i]);
    }
}

// y ← on(line, i)
extern "C" __global__ void draw(OnLine on, Line line, double* y) {
    y[threadIdx.x] = on(line, float(threadIdx.x));
}

// y ← test(limit, strict)
extern "C" __global__ void compare(Test test, int16_t limit, bool strict, uint8_t* y) {
    y[threadIdx.x] = test(limit, strict) ? 1 : 0;
}

// Counts by 1 each thread
extern "C" __global__ void tally(Count count, uint32_t* counter) {
    count(counter, 1);
}

// y ← op_chosen(y)
extern "C" __global__ void map_chosen(float* y, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op_chosen(y[i]);
    }
}

// y ← op_table[which](y)
extern "C" __global__ void map_table(float* y, uint32_t n, uint32_t which) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op_table[which](y[i]);
    }
}
