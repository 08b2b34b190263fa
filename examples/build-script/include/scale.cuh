#pragma once
__device__ inline float scaled(float a, float x) { return a * x; }
