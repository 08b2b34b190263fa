// Structs passed by value. Each `dump_` kernel copies a parameter's bytes as they arrived, padding included.

struct Grid {
    float x0, dx;
    int n;
};

struct Table {
    const float* data;
    unsigned len;
};

// 16-aligned through its member: 12 bytes of padding behind `id`.
struct Ball {
    int id;
    float4 pos;
};

// 3 bytes of padding in the middle and 3 at the end.
struct P {
    unsigned char kind;
    unsigned count;
    unsigned char flag;
};

struct Polynomial {
    float coefficient[4];
    int degree;
};

struct Inner {
    char mark;
    double weight;
};

struct Outer {
    short tag;
    Inner inner;
    float tail;
};

struct __align__(64) Wide {
    int value[16];
};

template <class T>
__device__ void dump(const T& value, unsigned char* out) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (unsigned i = 0; i < sizeof(T); ++i) out[i] = bytes[i];
}

// Iterations of z = z * z + c over n by n points from (x0, x0) on, dx apart; 0 to 200.
extern "C" __global__ void julia(unsigned* out, Grid g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.n * g.n) return;
    float x = g.x0 + g.dx * (i % g.n);
    float y = g.x0 + g.dx * (i / g.n);
    unsigned steps = 0;
    while (steps < 200 && x * x + y * y < 4.0f) {
        float next = x * x - y * y - 0.8f;
        y = 2.0f * x * y + 0.156f;
        x = next;
        ++steps;
    }
    out[i] = steps;
}

// out[i] = t.data[i] for the whole table.
extern "C" __global__ void look(Table t, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t.len) out[i] = t.data[i];
}

// v[i] = v[i] + g * b.pos.w + (b.pos.x, b.pos.y, b.pos.z), except for i == b.id.
extern "C" __global__ void step(Ball b, float3* v, float3 g, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || i == b.id) return;
    v[i].x += g.x * b.pos.w + b.pos.x;
    v[i].y += g.y * b.pos.w + b.pos.y;
    v[i].z += g.z * b.pos.w + b.pos.z;
}

// out[i] = p(x[i]), by Horner's rule.
extern "C" __global__ void evaluate(Polynomial p, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = p.degree; k >= 0; --k) sum = sum * x[i] + p.coefficient[k];
    out[i] = sum;
}

// The fields of o in order, as doubles.
extern "C" __global__ void nested(Outer o, double* out) {
    out[0] = o.tag;
    out[1] = o.inner.mark;
    out[2] = o.inner.weight;
    out[3] = o.tail;
}

// out is before, the 16 values of w, after. Drivers do not place a 64-aligned parameter where C would.
extern "C" __global__ void wide_between(char before, Wide w, char after, int* out) {
    out[0] = before;
    for (int i = 0; i < 16; ++i) out[1 + i] = w.value[i];
    out[17] = after;
}

// The 12 bytes of p.
extern "C" __global__ void dump_p(const __grid_constant__ P p, unsigned char* out) { dump(p, out); }

// The 32 bytes of b.
extern "C" __global__ void dump_ball(const __grid_constant__ Ball b, unsigned char* out) { dump(b, out); }

// The 32 bytes of o.
extern "C" __global__ void dump_outer(const __grid_constant__ Outer o, unsigned char* out) { dump(o, out); }

// The 20 bytes of p.
extern "C" __global__ void dump_polynomial(const __grid_constant__ Polynomial p, unsigned char* out) { dump(p, out); }
