// Heat in a bar that is cut into parts of n cells, of which each device has one.

// One step: each cell takes a share of the difference to its neighbours. before[0] lies before the part, after[0] behind it; a null
// pointer stands for an end of the bar, through which nothing goes.
extern "C" __global__ void diffuse(const float* before, const float* in, const float* after, float* out, float share, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float here = in[i];
    float left = i > 0 ? in[i - 1] : before ? before[0] : here;
    float right = i < n - 1 ? in[i + 1] : after ? after[0] : here;
    out[i] = fmaf(share, (left - here) + (right - here), here);
}
