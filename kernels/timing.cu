// Kernels that take long, or until the host lets them go: for what happens while a kernel still runs.

// Returns after so many cycles of the multiprocessor's clock.
__device__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

// After the wait, y = y + v for each thread of the grid; there is no bounds check.
extern "C" __global__ void slow_add(float* y, float v, long long cycles) {
    spin(cycles);
    y[blockIdx.x * blockDim.x + threadIdx.x] += v;
}

// After the wait, y = x: what x holds then, not at the launch.
extern "C" __global__ void slow_copy(const float* x, float* y, int n, long long cycles) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    spin(cycles);
    if (i < n) y[i] = x[i];
}

// Waits until flag, which the host maps and writes, is no longer 0; seen[0] is what it then is.
extern "C" __global__ void spin_flag(const volatile int* flag, int* seen) {
    int value;
    do value = *flag;
    while (value == 0);
    seen[0] = value;
}
