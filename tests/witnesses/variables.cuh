// Variables that a reader of one file does not see.
struct Window {
    int first;
    float gain;
};

typedef float real;
typedef unsigned count_t;

__constant__ real taps[5];
__constant__ Window windows[2];
__constant__ count_t limit;
__device__ count_t hits;
__device__ bool marks[4];
__device__ __align__(16) real wide[8];
__device__ const real ramp[3] = {0, 1, 2};
namespace filters {
namespace {
__device__ real hidden[3];
}
__device__ unsigned char bytes[8];
}
