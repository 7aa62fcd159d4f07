// Lane-crossing operations that have no short form in LLVM IR.
#include "abi.h"

namespace {

template <class T>
void match_any(uint32_t* out, uint8_t* same, const T* value, const uint32_t* members, uint32_t mask) {
  for (int i = 0; i < WS_LANES; ++i) {
    uint32_t found = 0;
    for (int j = 0; j < WS_LANES; ++j)
      found |= uint32_t(value[j] == value[i]) << j;
    out[i] = found & members[i] & mask;
    same[i] = 1;
  }
}

template <class T>
void match_all(uint32_t* out, uint8_t* same, const T* value, const uint32_t* members, uint32_t mask) {
  match_any(out, same, value, members, mask);
  for (int i = 0; i < WS_LANES; ++i) {
    const uint32_t lanes = members[i] & mask;
    same[i] = out[i] == lanes;
    out[i] = same[i] ? lanes : 0;
  }
}

}  // namespace

WS_API void ws_match_any_32(uint32_t* out, uint8_t* p, const uint32_t* a, const uint32_t* m, uint32_t mask) { match_any(out, p, a, m, mask); }
WS_API void ws_match_any_64(uint32_t* out, uint8_t* p, const uint64_t* a, const uint32_t* m, uint32_t mask) { match_any(out, p, a, m, mask); }
WS_API void ws_match_all_32(uint32_t* out, uint8_t* p, const uint32_t* a, const uint32_t* m, uint32_t mask) { match_all(out, p, a, m, mask); }
WS_API void ws_match_all_64(uint32_t* out, uint8_t* p, const uint64_t* a, const uint32_t* m, uint32_t mask) { match_all(out, p, a, m, mask); }

// op: add, min, max, and, or, xor; + 8 for signed.  Each lane reduces over the lanes its own mask names.
WS_API void ws_redux(uint32_t op, uint32_t* out, const uint32_t* a, const uint32_t* members, uint32_t mask) {
  for (int i = 0; i < WS_LANES; ++i) {
    uint32_t lanes = members[i] & mask;
    if (!lanes) { out[i] = 0; continue; }
    uint32_t r = a[__builtin_ctz(lanes)];
    for (lanes &= lanes - 1; lanes; lanes &= lanes - 1) {
      const uint32_t x = a[__builtin_ctz(lanes)];
      switch (op) {
        case 0: case 8: r += x; break;
        case 1: r = x < r ? x : r; break;
        case 9: r = int32_t(x) < int32_t(r) ? x : r; break;
        case 2: r = x > r ? x : r; break;
        case 10: r = int32_t(x) > int32_t(r) ? x : r; break;
        case 3: r &= x; break;
        case 4: r |= x; break;
        case 5: r ^= x; break;
      }
    }
    out[i] = r;
  }
}
