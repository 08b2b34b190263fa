// Types that a reader of one file does not see.
struct Particle {
    float x, y;
    int id;
};

struct Cloud {
    Particle first;
    float weight[3];
};

typedef float real;
typedef unsigned count_t;
