// Inline PTX: special registers, wide products, bit fields, lop3, prmt, predicates, branches, vector loads, carry chains,
// shared memory by 32-bit address, cache hints, volatile reads.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

__device__ __forceinline__ unsigned lane_id() {
  unsigned r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}
__device__ __forceinline__ unsigned lanes_below() {
  unsigned r;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
  return r;
}
__device__ uint64_t multiply_wide(uint32_t a, uint32_t b) {
  uint64_t r;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(r) : "r"(a), "r"(b));
  return r;
}
__device__ uint32_t bit_field(uint32_t v, uint32_t at, uint32_t width) {
  uint32_t r;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(v), "r"(at), "r"(width));
  return r;
}
__device__ uint32_t insert(uint32_t into, uint32_t what, int at, int width) {
  asm("bfi.b32 %0, %1, %0, %2, %3;" : "+r"(into) : "r"(what), "r"(at), "r"(width));
  return into;
}
template <int kTable> __device__ uint32_t logic(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"(kTable));
  return r;
}
__device__ uint4 add128(uint4 a, uint4 b) {
  uint4 r;
  asm("add.cc.u32 %0, %4, %8;\n\t"
      "addc.cc.u32 %1, %5, %9;\n\t"
      "addc.cc.u32 %2, %6, %10;\n\t"
      "addc.u32 %3, %7, %11;"
      : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "r"(b.z), "r"(b.w));
  return r;
}
__device__ int larger_by_branch(int a, int b) {
  int r;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.gt.s32 p, %1, %2;\n\t"
      "@p bra TAKE_A_%=;\n\t"
      "mov.s32 %0, %2;\n\t"
      "bra DONE_%=;\n"
      "TAKE_A_%=:\n\t"
      "mov.s32 %0, %1;\n"
      "DONE_%=:\n\t"
      "}"
      : "=r"(r)
      : "r"(a), "r"(b));
  return r;
}
__device__ float4 load_streaming(const float4* p) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
__device__ void store_shared(void* p, int v) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(p));
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}
__device__ double reciprocal(double x) {
  double r;
  asm("rcp.rn.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}
__device__ uint16_t saturate(float x) {
  uint16_t r;
  asm("cvt.rni.sat.u16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

__global__ void everything(uint64_t* out, const float4* floats) {
  __shared__ int shared[64];
  const int t = threadIdx.x;
  uint64_t* o = out + 20 * t;
  store_shared(&shared[t], t * t);
  __syncthreads();
  o[0] = lane_id() + 100 * __popc(lanes_below());
  o[1] = multiply_wide(0xfffffff0u + t, 0x12345678u);
  o[2] = bit_field(0xdeadbeefu, t, 7);
  o[3] = insert(0, 0xffu, t % 32, 5);
  o[4] = logic<0x96>(t, 0xff, 0x0f) + logic<0xe8>(t, 0xff, 0x0f) * 1000;  // xor; majority
  const uint4 sum = add128(make_uint4(~0u, ~0u, 5, t), make_uint4(1, 0, ~0u, 1));
  o[5] = sum.x | uint64_t(sum.y) << 32, o[6] = sum.z | uint64_t(sum.w) << 32;
  o[7] = larger_by_branch(t, 20);
  const float4 f = load_streaming(floats + t);
  o[8] = uint64_t(f.x + f.y * 10 + f.z * 100 + f.w * 1000);
  o[9] = shared[63 - t];
  o[10] = __double_as_longlong(reciprocal(t + 1));
  o[11] = saturate(t * 3000.5f - 5000);
  unsigned permuted;
  asm("prmt.b32 %0, %1, %2, 0x3715;" : "=r"(permuted) : "r"(0x33221100u + t), "r"(0x77665544u));
  o[12] = permuted;
  int clock_now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock_now)::"memory");
  unsigned neighbour, ok;
  asm volatile(
      "{ .reg .pred q;\n\t shfl.sync.down.b32 %0|q, %2, 1, 31, 0xffffffff;\n\t selp.u32 %1, 1, 0, q; }"
      : "=r"(neighbour), "=r"(ok)
      : "r"(t * 11));
  o[13] = neighbour * 2 + ok;
  unsigned vote;
  asm volatile("{ .reg .pred q; setp.ge.s32 q, %1, 40; vote.sync.ballot.b32 %0, q, 0xffffffff; }" : "=r"(vote) : "r"(t));
  o[14] = vote;
  unsigned long long bigger;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(bigger) : "r"(t), "r"(1u << 31), "l"(7ull));
  o[15] = bigger;
  float approximate;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(approximate) : "f"(float(t % 10)));
  o[16] = uint64_t(approximate + 0.5f);
  unsigned dot;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(dot) : "r"(0x01020304u), "r"(0x01010101u * (t % 5)), "r"(1000));
  o[17] = dot;
  unsigned grid;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(grid));
  o[18] = grid * 10 + (clock_now == clock_now);
  unsigned first;
  asm("bfind.u32 %0, %1;" : "=r"(first) : "r"(t));
  o[19] = first;
}

int main() {
  const int n = 64;
  static float floats[4 * n];
  static uint64_t got[20 * n];
  for (int i = 0; i < 4 * n; i++) floats[i] = i % 7;
  float4* d_f;
  uint64_t* d_o;
  cudaMalloc(&d_f, sizeof floats);
  cudaMalloc(&d_o, sizeof got);
  cudaMemcpy(d_f, floats, sizeof floats, cudaMemcpyHostToDevice);
  everything<<<1, n>>>(d_o, d_f);
  if (cudaError_t e = cudaMemcpy(got, d_o, sizeof got, cudaMemcpyDeviceToHost)) return printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  for (int t = 0; t < n; t++) {
    const float* f = floats + 4 * t;
    const uint32_t lane = t % 32, a = 0x33221100u + t, b = 0x77665544u;
    auto byte = [&](int k) { return (k < 4 ? a >> 8 * k : b >> 8 * (k - 4)) & 0xff; };
    union { double d; uint64_t u; } inverse;
    inverse.d = 1.0 / (t + 1);
    const double s = t * 3000.5 - 5000;
    const uint64_t want[20] = {
        lane + 100 * lane,
        uint64_t(uint32_t(0xfffffff0u + t)) * 0x12345678u,
        t < 32 ? 0xdeadbeefu >> t & 127 : 0,
        uint32_t(31u << lane),
        (t ^ 0xff ^ 0x0fu) + ((t & 0xff) | (t & 0x0f) | (0xff & 0x0f)) * 1000u,
        0,
        5u + (uint64_t(t + 2) << 32),
        uint64_t(t > 20 ? t : 20),
        uint64_t(f[0] + 10 * f[1] + 100 * f[2] + 1000 * f[3]),
        uint64_t((63 - t) * (63 - t)),
        inverse.u,
        uint64_t(s < 0 ? 0 : s > 65535 ? 65535 : s == long(s) ? s : (long(s) % 2 ? long(s) + 1 : long(s))),
        byte(5) | byte(1) << 8 | byte(7) << 16 | byte(3) << 24,
        uint64_t(lane == 31 ? t * 11 : (t + 1) * 11) * 2 + (lane != 31),
        uint64_t(t < 32 ? 0 : 0xffffff00u),
        uint64_t(t) << 31 | 7,
        uint64_t(1) << t % 10,
        1000u + 10u * (t % 5),
        11,
        t ? 31u - __builtin_clz(t) : 0xffffffffu,
    };
    for (int k = 0; k < 20; k++)
      if (got[20 * t + k] != want[k]) return printf("FAIL: thread %d, value %d: %llx, not %llx\n", t, k, (unsigned long long)got[20 * t + k], (unsigned long long)want[k]), 1;
  }
  puts("PASS");
}
