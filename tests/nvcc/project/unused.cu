// In the static library, and nobody wants it: it must not be linked.
__device__ int nowhere();
__device__ int unused() { return nowhere(); }
