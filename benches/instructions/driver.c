// A driver that does nothing and counts: enough of libcuda.so for cudarc and gridcall to open a device, load a kernel and
// launch it on any Linux machine, so that all instructions which are not in this library are the launch path's own.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int result;
typedef void* handle;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_SUPPORTED = 801 };

#define FUNCTIONS(F)                                                                                                      \
    F(cuInit) F(cuDriverGetVersion) F(cuDeviceGet) F(cuDeviceGetCount) F(cuDeviceGetName) F(cuDeviceGetAttribute)         \
    F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease_v2) F(cuCtxGetCurrent) F(cuCtxSetCurrent)                     \
    F(cuCtxSynchronize) F(cuCtxDestroy_v2) F(cuMemAlloc_v2) F(cuMemAllocAsync) F(cuMemFree_v2) F(cuMemFreeAsync)          \
    F(cuMemsetD8Async) F(cuMemcpyHtoDAsync_v2) F(cuStreamCreate) F(cuStreamDestroy_v2) F(cuStreamSynchronize)             \
    F(cuStreamWaitEvent) F(cuStreamIsCapturing) F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventRecord)                    \
    F(cuModuleLoadData) F(cuModuleLoadDataEx) F(cuModuleUnload) F(cuModuleGetFunction) F(cuFuncGetAttribute)              \
    F(cuFuncSetAttribute) F(cuFuncGetParamInfo) F(cuOccupancyMaxActiveBlocksPerMultiprocessor) F(cuLaunchKernel)          \
    F(cuGraphCreate) F(cuGraphDestroy) F(cuGraphAddKernelNode_v2) F(cuGraphInstantiateWithFlags) F(cuGraphExecDestroy)    \
    F(cuGraphUpload) F(cuGraphLaunch) F(cuGraphExecKernelNodeSetParams_v2)                                                \
    F(cuEventElapsedTime) F(cuGetErrorName) F(cuGetErrorString)

#define NUMBER(name) n_##name,
enum { FUNCTIONS(NUMBER) FUNCTION_COUNT };

static uint64_t calls[FUNCTION_COUNT];

#define NAME(name) #name,
static const char* const names[] = {FUNCTIONS(NAME)};

// The name of function `index` and how often it was called so far; null behind the last.
const char* driver_calls(size_t index, uint64_t* count) {
    if (index >= FUNCTION_COUNT) return NULL;
    *count = calls[index];
    return names[index];
}

#define COUNTED(name, ...)     \
    result name(__VA_ARGS__) { \
        calls[n_##name]++;

#define COUNTED_NOT(name) \
    result name(void) { return NOT_SUPPORTED; }

static _Thread_local handle current;
static char context, event, module, function, graph, node, exec;
static uintptr_t next_stream = 0x600000000000;
static uint64_t next_address = 0x700000000000;

static result allocate(uint64_t* address, size_t bytes) {
    *address = next_address;
    next_address += (bytes + 511) & ~(size_t)511;
    return SUCCESS;
}

COUNTED(cuInit, unsigned flags) return SUCCESS; }
COUNTED(cuDriverGetVersion, int* version) *version = 13000; return SUCCESS; }
COUNTED(cuDeviceGet, int* device, int ordinal) *device = ordinal; return SUCCESS; }
COUNTED(cuDeviceGetCount, int* count) *count = 1; return SUCCESS; }
COUNTED(cuDeviceGetName, char* name, int size, int device) strncpy(name, "none", (size_t)size); return SUCCESS; }

// The numbers are those of CUdevice_attribute, the values an H200's.
COUNTED(cuDeviceGetAttribute, int* value, int attribute, int device)
    switch (attribute) {
        case 1: case 2: case 3: *value = 1024; break;
        case 4: *value = 64; break;
        case 5: *value = 2147483647; break;
        case 6: case 7: *value = 65535; break;
        case 8: *value = 49152; break;
        case 16: *value = 132; break;
        case 75: *value = 9; break;
        case 76: *value = 0; break;
        case 97: *value = 232448; break;
        case 115: *value = 1; break;
        default: *value = 0;
    }
    return SUCCESS;
}

COUNTED(cuDevicePrimaryCtxRetain, handle* out, int device) *out = &context; return SUCCESS; }
COUNTED(cuDevicePrimaryCtxRelease_v2, int device) return SUCCESS; }
COUNTED(cuCtxGetCurrent, handle* out) *out = current; return SUCCESS; }
COUNTED(cuCtxSetCurrent, handle to) current = to; return SUCCESS; }
COUNTED(cuCtxSynchronize, void) return SUCCESS; }
COUNTED(cuCtxDestroy_v2, handle which) return SUCCESS; }

COUNTED(cuMemAlloc_v2, uint64_t* address, size_t bytes) return allocate(address, bytes); }
COUNTED(cuMemAllocAsync, uint64_t* address, size_t bytes, handle on) return allocate(address, bytes); }
COUNTED(cuMemFree_v2, uint64_t address) return SUCCESS; }
COUNTED(cuMemFreeAsync, uint64_t address, handle on) return SUCCESS; }
COUNTED(cuMemsetD8Async, uint64_t address, unsigned char value, size_t bytes, handle on) return SUCCESS; }
COUNTED(cuMemcpyHtoDAsync_v2, uint64_t address, const void* from, size_t bytes, handle on) return SUCCESS; }

COUNTED(cuStreamCreate, handle* out, unsigned flags) *out = (handle)(next_stream += 64); return SUCCESS; }
COUNTED(cuStreamDestroy_v2, handle which) return SUCCESS; }
COUNTED(cuStreamSynchronize, handle which) return SUCCESS; }
COUNTED(cuStreamWaitEvent, handle which, handle waited, unsigned flags) return SUCCESS; }
COUNTED(cuStreamIsCapturing, handle which, unsigned* status) *status = 0; return SUCCESS; }
COUNTED(cuEventCreate, handle* out, unsigned flags) *out = &event; return SUCCESS; }
COUNTED(cuEventDestroy_v2, handle which) return SUCCESS; }
COUNTED(cuEventRecord, handle which, handle on) return SUCCESS; }
COUNTED(cuEventElapsedTime, float* out, handle start, handle end) *out = 0; return SUCCESS; }

COUNTED(cuModuleLoadData, handle* out, const void* image) *out = &module; return SUCCESS; }
COUNTED(cuModuleLoadDataEx, handle* out, const void* image, unsigned count, unsigned* options, void** values)
    *out = &module;
    return SUCCESS;
}
COUNTED(cuModuleUnload, handle which) return SUCCESS; }
COUNTED(cuModuleGetFunction, handle* out, handle in, const char* name) *out = &function; return SUCCESS; }

// The numbers are those of CUfunction_attribute.
COUNTED(cuFuncGetAttribute, int* value, int attribute, handle which)
    switch (attribute) {
        case 0: *value = 1024; break;
        case 4: *value = 8; break;
        case 8: *value = 49152; break;
        default: *value = 0;
    }
    return SUCCESS;
}
COUNTED(cuFuncSetAttribute, handle which, int attribute, int value) return SUCCESS; }
COUNTED(cuFuncGetParamInfo, handle which, size_t index, size_t* offset, size_t* size) return NOT_SUPPORTED; }
COUNTED(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, handle which, int threads, size_t shared)
    *blocks = 2;
    return SUCCESS;
}

COUNTED(cuLaunchKernel, handle which, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
        unsigned block_z, unsigned shared, handle on, void** parameters, void** extra)
    return SUCCESS;
}

COUNTED(cuGraphCreate, handle* out, unsigned flags) *out = &graph; return SUCCESS; }
COUNTED(cuGraphDestroy, handle which) return SUCCESS; }
COUNTED(cuGraphAddKernelNode_v2, handle* out, handle in, const handle* after, size_t count, const void* params)
    *out = &node;
    return SUCCESS;
}
COUNTED(cuGraphInstantiateWithFlags, handle* out, handle of, unsigned long long flags) *out = &exec; return SUCCESS; }
COUNTED(cuGraphExecDestroy, handle which) return SUCCESS; }
COUNTED(cuGraphUpload, handle which, handle on) return SUCCESS; }
COUNTED(cuGraphLaunch, handle which, handle on) return SUCCESS; }
COUNTED(cuGraphExecKernelNodeSetParams_v2, handle which, handle node, const void* params) return SUCCESS; }

// What a program built for graphs looks for, and none here uses.
COUNTED_NOT(cuGraphAddMemcpyNode)
COUNTED_NOT(cuGraphAddMemsetNode)
COUNTED_NOT(cuGraphAddEmptyNode)
COUNTED_NOT(cuGraphAddChildGraphNode)
COUNTED_NOT(cuGraphChildGraphNodeGetGraph)
COUNTED_NOT(cuGraphAddDependencies)
COUNTED_NOT(cuGraphDestroyNode)
COUNTED_NOT(cuGraphKernelNodeSetAttribute)
COUNTED_NOT(cuGraphNodeSetEnabled)
COUNTED_NOT(cuGraphAddNode_v2)
COUNTED_NOT(cuGraphConditionalHandleCreate)
COUNTED_NOT(cuGraphExecMemcpyNodeSetParams)
COUNTED_NOT(cuGraphExecMemsetNodeSetParams)
COUNTED_NOT(cuGraphGetNodes)
COUNTED_NOT(cuGraphNodeGetType)
COUNTED_NOT(cuStreamBeginCaptureToGraph)
COUNTED_NOT(cuStreamGetCaptureInfo_v3)
COUNTED_NOT(cuStreamEndCapture)
COUNTED_NOT(cuThreadExchangeStreamCaptureMode)

COUNTED(cuGetErrorName, result code, const char** text) *text = "CUDA_ERROR"; return SUCCESS; }
COUNTED(cuGetErrorString, result code, const char** text) *text = "an error"; return SUCCESS; }
