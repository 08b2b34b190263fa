#ifndef EVERY
#define EVERY 2
#endif
