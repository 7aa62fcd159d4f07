#include "heap.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "check.h"
#include "report.h"
#include "launch.h"
#include "memory.h"
#include "scheduler.h"

namespace ws::heap {

namespace {

constexpr uint64_t kAlign = 16, kGap = 16;  // a gap, so that running over the end is seen

struct Heap {
  std::mutex mutex;
  uint64_t limit = uint64_t(8) << 20;       // as cudaLimitMallocHeapSize
  uint64_t base = 0, size = 0;
  std::map<uint64_t, uint64_t> free;        // address -> size
  std::map<uint64_t, uint64_t> live;        // address -> size
  std::map<uint64_t, uint64_t> freed;       // address -> size, for reports
  std::vector<std::pair<ws_range*, size_t>> caches;  // of the running launch: they may name live pieces
};

Heap& the_heap() {
  static Heap& h = *new Heap;
  return h;
}

bool start(Heap& h) {
  if (h.base) return true;
  std::string problem;
  h.base = memory::allocate(h.limit, "device heap", memory::kHeap, &problem);
  if (!h.base) return false;
  h.size = h.limit;
  h.free[h.base] = h.size;
  return true;
}

bool find_in(const std::map<uint64_t, uint64_t>& m, uint64_t address, uint64_t* base, uint64_t* size) {
  auto it = m.upper_bound(address);
  if (it == m.begin()) return false;
  --it;
  *base = it->first;
  *size = it->second;
  return address - *base < *size;
}

}  // namespace

uint64_t allocate(uint64_t bytes) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  if (bytes == 0 || bytes > h.limit || !start(h)) return 0;
  const uint64_t need = (bytes + kAlign - 1) / kAlign * kAlign + kGap;
  for (auto it = h.free.begin(); it != h.free.end(); ++it) {
    if (it->second < need) continue;
    const uint64_t base = it->first, rest = it->second - need;
    h.free.erase(it);
    if (rest) h.free[base + need] = rest;
    h.live[base] = bytes;
    auto f = h.freed.lower_bound(base);
    while (f != h.freed.end() && f->first < base + need) f = h.freed.erase(f);
    if (options().poison) std::memset(memory::host(base), int(options().poison), bytes);
    return base;
  }
  return 0;
}

bool release(uint64_t base) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  auto it = h.live.find(base);
  if (it == h.live.end()) return false;
  for (auto [entries, count] : h.caches)
    for (size_t i = 0; i < count; ++i)
      if (__atomic_load_n(&entries[i].base, __ATOMIC_RELAXED) == base) __atomic_store_n(&entries[i].limit, 0, __ATOMIC_RELAXED);
  uint64_t at = base, size = (it->second + kAlign - 1) / kAlign * kAlign + kGap;
  h.freed[base] = it->second;
  h.live.erase(it);
  auto next = h.free.lower_bound(at);
  if (next != h.free.end() && next->first == at + size) {
    size += next->second;
    next = h.free.erase(next);
  }
  if (next != h.free.begin()) {
    auto prev = std::prev(next);
    if (prev->first + prev->second == at) {
      prev->second += size;
      return true;
    }
  }
  h.free[at] = size;
  return true;
}

bool find(uint64_t address, Piece* out) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  return find_in(h.live, address, &out->base, &out->size);
}

bool find_freed(uint64_t address, Piece* out) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  out->freed = true;
  return find_in(h.freed, address, &out->base, &out->size);
}

void remember(uint64_t base, ws_range* entry, const ws_range& good) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  if (!h.live.count(base)) return;
  entry->base = good.base;
  __atomic_store_n(&entry->limit, good.limit, __ATOMIC_RELEASE);
}

void watch(ws_range* entries, size_t count) {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  h.caches.emplace_back(entries, count);
}

void unwatch() {
  Heap& h = the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  h.caches.clear();
}

}  // namespace ws::heap

using namespace ws;

int ws_set_heap_limit(uint64_t bytes) {
  heap::Heap& h = heap::the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  if (h.base) return fail_call(WS_E_MEMORY, "the size of the device heap cannot change after a kernel has used malloc");
  h.limit = bytes;
  return 0;
}

uint64_t ws_heap_limit() {
  heap::Heap& h = heap::the_heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  return h.limit;
}

void ws_device_malloc(ws_warp*, const uint64_t* size, uint64_t* result, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    result[lane] = heap::allocate(size[lane]);
  }
}

void ws_device_free(ws_warp* w, uint32_t site, const uint64_t* pointer, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t p = pointer[lane];
    if (p == 0 || heap::release(p)) continue;
    heap::Piece piece;
    std::string why;
    if (heap::find(p, &piece))
      why = format("it lies %llu bytes inside a block of %llu bytes", static_cast<unsigned long long>(p - piece.base),
                   static_cast<unsigned long long>(piece.size));
    else if (heap::find_freed(p, &piece) && piece.base == p)
      why = "it has been freed already";
    else
      why = "it did not come from malloc in a kernel";
    fail(warp_of(w), Failure{WS_E_MEMORY, site, 1u << lane, format("free of 0x%llx: %s", static_cast<unsigned long long>(p), why.c_str())});
  }
}
