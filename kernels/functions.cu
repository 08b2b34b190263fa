// Functions of the device by their addresses, in variables and as parameters.

typedef float (*Op)(float);
typedef float (*Fold)(float, float);

struct Line {
    float slope;
    double offset;
};
typedef double (*OnLine)(Line, float);
typedef bool (*Test)(short, bool);
typedef void (*Count)(unsigned*, unsigned long long);

__device__ unsigned calls;

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

__device__ bool is_below(short limit, bool strict) {
    return short(threadIdx.x) < limit || (!strict && short(threadIdx.x) == limit);
}

__device__ void count(unsigned* counter, unsigned long long by) {
    atomicAdd(counter, unsigned(by));
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
extern "C" __global__ void map(Op op, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op(x[i]);
    }
}

// y ← op(y), by a name that holds the types: _Z8map_in_.PFffEPfj
__global__ void map_in_place(Op op, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op(y[i]);
    }
}

// y ← x folded with y
extern "C" __global__ void zip(const float* x, float* y, unsigned n, Fold fold) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = fold(x[i], y[i]);
    }
}

// y ← on(line, i)
extern "C" __global__ void draw(OnLine on, Line line, double* y) {
    y[threadIdx.x] = on(line, float(threadIdx.x));
}

// y ← test(limit, strict)
extern "C" __global__ void compare(Test test, short limit, bool strict, unsigned char* y) {
    y[threadIdx.x] = test(limit, strict) ? 1 : 0;
}

// Counts by 1 each thread
extern "C" __global__ void tally(Count count, unsigned* counter) {
    count(counter, 1);
}

// y ← op_chosen(y)
extern "C" __global__ void map_chosen(float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op_chosen(y[i]);
    }
}

// y ← op_table[which](y)
extern "C" __global__ void map_table(float* y, unsigned n, unsigned which) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = op_table[which](y[i]);
    }
}
