// The second file of launches.cu, with a kernel and a variable of names that are there, too.
static __device__ int plain = 22;
static __global__ void same_name(int* out) { *out = plain; }
void call_other(int* out) { same_name<<<1, 1>>>(out); }
