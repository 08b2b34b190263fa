#pragma once
template <class T> __device__ T twice(T value) { return value + value; }
