// Element-wise kernels over one-dimensional arrays, and the simplest two-dimensional ones.

__device__ int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// y = a * x + y, the count first and unsigned.
extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// y = a * x + y, the count first and signed.
extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = thread_index();
    if (i < n) y[i] = a * x[i] + y[i];
}

// y = a * y.
extern "C" __global__ void scale(float* y, float a, int n) {
    int i = thread_index();
    if (i < n) y[i] *= a;
}

// Every element of y becomes v.
extern "C" __global__ void fill(float* y, float v, int n) {
    int i = thread_index();
    if (i < n) y[i] = v;
}

// One zero for each thread of the grid; there is no bounds check.
extern "C" __global__ void zero(float* y) { y[thread_index()] = 0.0f; }

// out[i] = x[idx[i]].
extern "C" __global__ void gather(const float* x, const int* idx, float* out, int n) {
    int i = thread_index();
    if (i < n) out[i] = x[idx[i]];
}

// Negative elements of y become zero.
extern "C" __global__ void relu(float* y, int n) {
    int i = thread_index();
    if (i < n) y[i] = fmaxf(y[i], 0.0f);
}

// out = in.
extern "C" __global__ void copy(const float* in, float* out, int n) {
    int i = thread_index();
    if (i < n) out[i] = in[i];
}

// y = x, sixteen bytes at a time: both pointers must be 16-aligned.
extern "C" __global__ void copy4(const float4* x, float4* y, int n4) {
    int i = thread_index();
    if (i < n4) y[i] = x[i];
}

// Writes 1 to the first n elements; the count is 64 bits wide.
extern "C" __global__ void pad(float* out, size_t n) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}

// out = a + b in double precision.
extern "C" __global__ void add_f64(const double* a, const double* b, double* out, int n) {
    int i = thread_index();
    if (i < n) out[i] = a[i] + b[i];
}

// Adds every element of x to out[0], by atomics.
extern "C" __global__ void sum_into(const float* x, float* out, int n) {
    int i = thread_index();
    if (i < n) atomicAdd(out, x[i]);
}

// out (cols by rows) is the transpose of in (rows by cols); total is rows * cols.
extern "C" __global__ void transpose(const float* in, float* out, int rows, int cols, int total) {
    int i = thread_index();
    if (i < total) out[(i % cols) * rows + i / cols] = in[i];
}

// out[r] is the sum of row r of x (rows by cols), from left to right.
extern "C" __global__ void rowsum(const float* x, float* out, int rows, int cols) {
    int r = thread_index();
    if (r >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += x[r * cols + c];
    out[r] = sum;
}
