#include "check.h"

#include <algorithm>
#include <cstring>

#include "heap.h"
#include "scheduler.h"

namespace ws {

namespace {

struct Resolved {
  uint32_t space;
  uint64_t address;
};

Resolved resolve(uint32_t space, uint64_t address) {
  if (space != WS_GENERIC) return {space, address};
  if (address - WS_SHARED_WINDOW < WS_WINDOW_SIZE) return {WS_SHARED, address - WS_SHARED_WINDOW};
  if (address - WS_LOCAL_WINDOW < WS_WINDOW_SIZE) return {WS_LOCAL, address - WS_LOCAL_WINDOW};
  if (address - WS_PARAM_WINDOW < WS_WINDOW_SIZE) return {WS_PARAM, address - WS_PARAM_WINDOW};
  return {WS_GLOBAL, address};
}

// What the address range of the access is allowed to be, in the numbers that the kernel uses.
bool allowed(const Warp& w, uint32_t space, uint64_t address, uint32_t bytes, Place* out) {
  const Resolved r = resolve(space, address);
  *out = Place{address - r.address, 0, 0};
  switch (r.space) {
    case WS_SHARED: out->size = w.shared_size; break;
    case WS_LOCAL: out->size = w.local_size; break;
    case WS_PARAM: out->size = w.block->launch->info->param_bytes; break;
    default: return locate(address, bytes, out);
  }
  return r.address + bytes <= out->size;
}

uint32_t failure_code(const Warp& w, uint32_t space, uint32_t kind, uint32_t bytes, uint32_t align, uint64_t address, Place* place) {
  if (!allowed(w, space, address, bytes, place)) {
    const bool global = resolve(space, address).space == WS_GLOBAL;
    return global && address < 65536 ? WS_E_NULL : WS_E_OOB;
  }
  if (address % align) return WS_E_MISALIGNED;
  if (kind != WS_LOAD && (place->flags & memory::kReadOnly)) return WS_E_READONLY;
  return 0;
}

}  // namespace

memory::View& view() {
  static memory::View& v = *new memory::View;
  return v;
}

bool locate(uint64_t address, uint64_t bytes, Place* out) {
  memory::Span span{};
  if (const memory::Span* s = view().find(address)) {
    span = *s;
  } else {  // what came into being since the launch began: by another host thread, or the heap at its first use
    memory::Allocation a;
    if (!memory::find(address, &a)) return false;
    span = memory::Span{a.base, a.size, a.flags};
  }
  if (span.flags & memory::kHeap) {
    heap::Piece piece;
    if (!heap::find(address, &piece)) return false;
    span = memory::Span{piece.base, piece.size, memory::kHeap};
  }
  *out = Place{span.base, span.size, span.flags};
  return address - span.base + bytes <= span.size;
}

void check_access(Warp& w, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, uint32_t align, const uint64_t* addr, uint32_t mask,
                  bool remember) {
  if (!mask) return;
  Place first{}, place{};
  uint32_t bad = 0, code = 0, bad_lane = 0;
  bool one = true;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    const uint64_t a = addr[lane];
    // Neighbouring lanes usually share an allocation.
    if (place.size && a - place.base < place.size && a - place.base + bytes <= place.size && a % align == 0 &&
        (kind == WS_LOAD || !(place.flags & memory::kReadOnly)))
      continue;
    Place p{};
    const uint32_t c = failure_code(w, space, kind, bytes, align, a, &p);
    if (c) {
      if (!code) {
        code = c;
        bad_lane = lane;
      }
      bad |= 1u << lane;
      continue;
    }
    if (first.size) one = false; else first = p;
    place = p;
  }
  if (bad) fail_access(w, BadAccess{code, site, bad, space, kind, bytes, addr[bad_lane]});
  if (!one || !remember || site == kNone || !w.cache) return;
  const ws_range good{first.base, first.size - bytes + 1};
  if (first.flags & memory::kHeap) heap::remember(first.base, &w.cache[site], good);
  else w.cache[site] = good;
}

std::string read_string(Warp& w, uint64_t address, uint32_t lane, size_t most) {
  if (address == 0) return "(null)";
  std::string out;
  Place p{};
  if (!allowed(w, WS_GENERIC, address, 1, &p)) return format("(unreadable string at 0x%llx)", static_cast<unsigned long long>(address));
  const char* s = reinterpret_cast<const char*>(host_address(w, WS_GENERIC, address, lane));
  const size_t room = std::min<uint64_t>(p.size - (address - p.base), most);
  return std::string(s, strnlen(s, room));
}

}  // namespace ws

using namespace ws;

void ws_check(ws_warp* w, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, const uint64_t* addr, uint32_t mask) {
  const uint32_t power = bytes & (bytes - 1) ? 1 : std::min(bytes, 16u);
  check_access(warp_of(w), site, space, kind, bytes, std::max(power, 1u), addr, mask);
}

void ws_read(ws_warp* w, uint32_t site, uint32_t space, const uint64_t* addr, void* out, uint32_t bytes, uint32_t mask) {
  check_access(warp_of(w), site, space, WS_LOAD, bytes, 1, addr, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    std::memcpy(static_cast<uint8_t*>(out) + size_t(lane) * bytes, host_address(*w, space, addr[lane], lane), bytes);
  }
}

void ws_write(ws_warp* w, uint32_t site, uint32_t space, const uint64_t* addr, const void* in, uint32_t bytes, uint32_t mask) {
  check_access(warp_of(w), site, space, WS_STORE, bytes, 1, addr, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    std::memcpy(host_address(*w, space, addr[lane], lane), static_cast<const uint8_t*>(in) + size_t(lane) * bytes, bytes);
  }
}
