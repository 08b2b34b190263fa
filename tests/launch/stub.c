// Drivers that are of no use. With OLD, one that lacks what came after CUDA 9; else one that has all functions that are
// looked for. `cuInit` answers what GRIDCALL_TEST_STUB_ANSWER says.

#include <stdlib.h>

int cuInit(unsigned flags) {
    const char* answer = getenv("GRIDCALL_TEST_STUB_ANSWER");
    (void)flags;
    return answer ? atoi(answer) : 0;
}

int cuDeviceGetCount(int* count) {
    *count = 0;
    return 0;
}

// As the toolkit's stub answers.
#define STUB(name) \
    int name(void) { return 34; }

STUB(cuDriverGetVersion)
STUB(cuDeviceGetAttribute)
STUB(cuCtxGetCurrent)
STUB(cuStreamSynchronize)
STUB(cuModuleLoadDataEx)
STUB(cuModuleUnload)
STUB(cuModuleGetFunction)
STUB(cuFuncGetAttribute)
STUB(cuOccupancyMaxActiveBlocksPerMultiprocessor)
STUB(cuLaunchKernel)
STUB(cuEventElapsedTime)
STUB(cuGetErrorName)
STUB(cuGetErrorString)

#ifndef OLD
STUB(cuStreamIsCapturing)
STUB(cuFuncSetAttribute)
#endif
