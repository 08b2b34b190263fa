// Kernels with C++ names, which PTX holds mangled. Relocatable code makes those of templates weak, as NVRTC does always.
// nvcc flags: -rdc=true

static __device__ int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// _Z4reluPfi: extern "C" is forgotten.
__global__ void relu(float* y, int n) {
    int i = thread_index();
    if (i < n) y[i] = fmaxf(y[i], 0.0f);
}

// _Z8relu_cppPfi: as relu, under a name that no other file here has.
__global__ void relu_cpp(float* y, int n) {
    int i = thread_index();
    if (i < n) y[i] = fmaxf(y[i], 0.0f);
}

// _Z3addPfi and _Z3addPdi: overloads, y = y + 1.
__global__ void add(float* y, int n) {
    int i = thread_index();
    if (i < n) y[i] += 1.0f;
}

__global__ void add(double* y, int n) {
    int i = thread_index();
    if (i < n) y[i] += 1.0;
}

// _Z3addIfEvPT_S0_i and _Z3addIdEvPT_S0_i: template instances, y = y + v.
template <class T>
__global__ void add(T* y, T v, int n) {
    int i = thread_index();
    if (i < n) y[i] += v;
}

template __global__ void add<float>(float*, float, int);
template __global__ void add<double>(double*, double, int);

// _ZN5stats7extremeILi0EEEvPKfPfi and ..ILi1E..: in a namespace, chosen by a number; the least or greatest of x.
namespace stats {

template <int greatest>
__global__ void extreme(const float* x, float* out, int n) {
    float best = x[0];
    for (int i = 1; i < n; ++i) best = greatest ? fmaxf(best, x[i]) : fminf(best, x[i]);
    out[0] = best;
}

template __global__ void extreme<0>(const float*, float*, int);
template __global__ void extreme<1>(const float*, float*, int);

// _ZN5stats6squarePfi: in a namespace, y = y * y.
__global__ void square(float* y, int n) {
    int i = thread_index();
    if (i < n) y[i] *= y[i];
}

}  // namespace stats
