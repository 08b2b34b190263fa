// Kernels that begin before the one in front of them ends, and what shows that they did.
// nvcc arch: sm_90

__device__ long long nanoseconds() {
    long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__device__ void spin(long long duration) {
    long long start = nanoseconds();
    while (nanoseconds() - start < duration) {
    }
}

// Lets the next kernel begin, waits so many nanoseconds, and then writes y = 1, 2, ...; one block. times: when it began
// and ended.
extern "C" __global__ void first(int* y, long long* times, int n, long long duration) {
    if (threadIdx.x == 0) times[0] = nanoseconds();
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    spin(duration);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = i + 1;
    __syncthreads();
    if (threadIdx.x == 0) times[1] = nanoseconds();
}

// y = 2 x, which the kernel in front may still have to write; one block. times: when it began and had waited.
extern "C" __global__ void second(const int* x, int* y, long long* times, int n) {
    if (threadIdx.x == 0) times[0] = nanoseconds();
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x == 0) times[1] = nanoseconds();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[i];
}

// times[block]: when each block began; each then waits so many nanoseconds.
extern "C" __global__ void stamp(long long* times, long long duration) {
    if (threadIdx.x == 0) times[blockIdx.x] = nanoseconds();
    spin(duration);
}
