#include "memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>

#include "launch.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace ws::memory {

namespace {

constexpr uint64_t kGranule = 256;              // alignment, and least distance of two allocations
constexpr uint64_t kSmall = 32768;              // allocations up to this share a chunk
constexpr uint64_t kChunk = uint64_t(1) << 20;
constexpr uint64_t kGuard = 65536;              // no access after a large allocation
constexpr uint64_t kHuge = uint64_t(2) << 20;
constexpr size_t kMaxMappings = 20000;          // of the 65530 that Linux allows; beyond, all share chunks
constexpr size_t kMaxFreed = 4096;              // remembered for reports
constexpr uint64_t kArenaAt = 0x200000000000, kDeviceAt = 0x300000000000;

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

struct Chunk {
  uint64_t end, used;
  uint32_t live;
};

struct Arena {
  std::mutex mutex;
  bool ready = false;
  uint8_t* host = nullptr;
  uint64_t device = 0, size = 0;
  int64_t delta = 0;
  uint64_t page = 4096;
  uint64_t bump = 0;                            // offset of what was never handed out
  std::map<uint64_t, uint64_t> free;            // offset -> size: handed out once, and given back
  std::map<uint64_t, Allocation> live;          // by base
  std::map<uint64_t, Allocation> freed;
  std::deque<uint64_t> freed_order;
  std::map<uint64_t, Chunk> chunks;             // by offset
  uint64_t chunk = ~0ull;                       // the one being filled
  size_t mappings = 0;
  uint32_t numbers = 0;
  uint64_t in_use = 0, peak = 0;
  std::atomic<uint64_t> version{0};
};

// Never destroyed: kernels of other threads may run until the very end of the process.
Arena& arena() {
  static Arena& a = *new Arena;
  return a;
}

void* reserve(uint64_t at, uint64_t size) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
  void* p = mmap(reinterpret_cast<void*>(at), size, PROT_NONE, flags, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (at && p != reinterpret_cast<void*>(at)) {  // a kernel that does not know the flag takes it as a hint
    munmap(p, size);
    return nullptr;
  }
  return p;
}

bool commit(Arena& a, uint64_t offset, uint64_t size) {
  return mprotect(a.host + offset, size, PROT_READ | PROT_WRITE) == 0;
}

// Gives the memory back, with its page tables, and keeps the addresses.
void decommit(Arena& a, uint64_t offset, uint64_t size) {
  mmap(a.host + offset, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// The same memory at the arena's address and at the device's, so that host code can use device pointers to it.
bool commit_shared(Arena& a, uint64_t offset, uint64_t size) {
  const int fd = int(syscall(SYS_memfd_create, "warpsmith", MFD_CLOEXEC));
  if (fd < 0) return false;
  const int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
  const bool done = ftruncate(fd, off_t(size)) == 0 && mmap(a.host + offset, size, access, flags, fd, 0) != MAP_FAILED &&
                    mmap(reinterpret_cast<void*>(a.device + offset), size, access, flags, fd, 0) != MAP_FAILED;
  close(fd);
  return done;
}

void decommit_shared(Arena& a, uint64_t offset, uint64_t size) {
  decommit(a, offset, size);
  mmap(reinterpret_cast<void*>(a.device + offset), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// Addresses are used again only when all have been used once, so that a use after free is recognised.
uint64_t take_range(Arena& a, uint64_t size, uint64_t align) {
  const uint64_t at = round_up(a.bump, align);
  if (at + size <= a.size) {
    if (at > a.bump) a.free[a.bump] = at - a.bump;
    a.bump = at + size;
    return at;
  }
  for (auto it = a.free.begin(); it != a.free.end(); ++it) {
    const uint64_t start = round_up(it->first, align), end = it->first + it->second;
    if (start + size > end) continue;
    const uint64_t before = start - it->first;
    const uint64_t first = it->first;
    a.free.erase(it);
    if (before) a.free[first] = before;
    if (start + size < end) a.free[start + size] = end - start - size;
    auto f = a.freed.lower_bound(a.device + start);
    while (f != a.freed.end() && f->first < a.device + start + size) f = a.freed.erase(f);
    return start;
  }
  return ~0ull;
}

void give_range(Arena& a, uint64_t offset, uint64_t size) {
  auto next = a.free.lower_bound(offset);
  if (next != a.free.end() && next->first == offset + size) {
    size += next->second;
    next = a.free.erase(next);
  }
  if (next != a.free.begin()) {
    auto prev = std::prev(next);
    if (prev->first + prev->second == offset) {
      prev->second += size;
      return;
    }
  }
  a.free[offset] = size;
}

bool is_small(const Arena& a, uint64_t bytes) { return bytes <= kSmall || a.mappings >= kMaxMappings; }

uint64_t allocate_small(Arena& a, uint64_t bytes) {
  const uint64_t need = round_up(bytes, kGranule) + kGranule;
  auto c = a.chunks.find(a.chunk);
  if (c == a.chunks.end() || c->second.used + need > c->second.end) {
    const uint64_t size = round_up(std::max(kChunk, need), a.page);
    const uint64_t at = take_range(a, size + kGuard, a.page);
    if (at == ~0ull) return at;
    if (!commit(a, at, size)) {
      give_range(a, at, size + kGuard);
      return ~0ull;
    }
    ++a.mappings;
    a.chunk = at;
    c = a.chunks.insert_or_assign(at, Chunk{at + size, at, 0}).first;
  }
  const uint64_t at = c->second.used;
  c->second.used += need;
  ++c->second.live;
  return at;
}

uint64_t allocate_large(Arena& a, uint64_t bytes) {
  const uint64_t size = round_up(bytes, a.page);
  const uint64_t at = take_range(a, size + kGuard, size >= kHuge ? kHuge : a.page);
  if (at == ~0ull) return at;
  if (!commit(a, at, size)) {
    give_range(a, at, size + kGuard);
    return ~0ull;
  }
#ifdef MADV_HUGEPAGE
  if (size >= kHuge) madvise(a.host + at, size, MADV_HUGEPAGE);
#endif
  ++a.mappings;
  return at;
}

uint64_t allocate_shared(Arena& a, uint64_t bytes) {
  const uint64_t size = round_up(bytes, a.page);
  const uint64_t at = take_range(a, size + kGuard, a.page);
  if (at == ~0ull) return at;
  if (!commit_shared(a, at, size)) {
    decommit_shared(a, at, size);
    give_range(a, at, size + kGuard);
    return ~0ull;
  }
  a.mappings += 2;
  return at;
}

void release_shared(Arena& a, uint64_t offset, uint64_t bytes) {
  const uint64_t size = round_up(bytes, a.page);
  decommit_shared(a, offset, size);
  give_range(a, offset, size + kGuard);
  a.mappings -= 2;
}

void release_memory(Arena& a, uint64_t offset, uint64_t bytes) {
  auto c = a.chunks.upper_bound(offset);
  if (c != a.chunks.begin() && std::prev(c)->second.end > offset) {
    c = std::prev(c);
    if (--c->second.live || c->first == a.chunk) {
      const uint64_t from = round_up(offset, a.page), to = (offset + bytes) / a.page * a.page;
      if (to > from) madvise(a.host + from, to - from, MADV_DONTNEED);
      return;
    }
    const uint64_t size = c->second.end - c->first;
    decommit(a, c->first, size);
    give_range(a, c->first, size + kGuard);
    a.chunks.erase(c);
    --a.mappings;
    return;
  }
  const uint64_t size = round_up(bytes, a.page);
  decommit(a, offset, size);
  give_range(a, offset, size + kGuard);
  --a.mappings;
}

uint64_t read_number(const char* path, const char* key) {
  FILE* f = std::fopen(path, "re");
  if (!f) return ~0ull;
  char line[256];
  uint64_t value = ~0ull;
  const size_t n = std::strlen(key);
  while (std::fgets(line, sizeof line, f)) {
    if (std::strncmp(line, key, n) != 0) continue;
    unsigned long long v;
    if (std::sscanf(line + n, "%llu", &v) == 1) value = v;
    break;
  }
  std::fclose(f);
  return value;
}

std::string gib(uint64_t bytes) {
  if (bytes < (uint64_t(1) << 30)) return format("%.1f MiB", double(bytes) / (1 << 20));
  return format("%.1f GiB", double(bytes) / (uint64_t(1) << 30));
}

const Allocation* containing(const std::map<uint64_t, Allocation>& m, uint64_t address) {
  auto it = m.upper_bound(address);
  if (it == m.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? &it->second : nullptr;
}

}  // namespace

bool init(std::string* problem) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  if (a.ready) return true;
  a.page = uint64_t(sysconf(_SC_PAGESIZE));
  // Where address space is limited (ulimit -v), less will do.
  for (uint64_t size = uint64_t(1) << 40; size >= (uint64_t(1) << 28); size >>= 1) {
    void* h = reserve(kArenaAt, size);
    void* d = reserve(kDeviceAt, size);
    if (!h) h = reserve(0, size);
    if (!d) d = reserve(0, size);
    if (h && d) {
      // With the arena below, null + delta is an address that no process may touch: it faults, always.
      if (h > d) std::swap(h, d);
      a.host = static_cast<uint8_t*>(h);
      a.device = reinterpret_cast<uint64_t>(d);
      a.size = size;
      a.delta = int64_t(reinterpret_cast<uint64_t>(h) - a.device);
      a.ready = true;
      return true;
    }
    if (h) munmap(h, size);
    if (d) munmap(d, size);
  }
  *problem = "cannot reserve address space for device memory: the process is limited to too little (ulimit -v)";
  return false;
}

int64_t delta() { return arena().delta; }

uint64_t machine_available() {
  uint64_t available = read_number("/proc/meminfo", "MemAvailable:");
  if (available != ~0ull) available *= 1024;
  const uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
  const uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");
  if (limit != ~0ull && used != ~0ull) available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

uint64_t allocate(uint64_t bytes, const char* label, uint32_t flags, std::string* problem) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  if (bytes == 0) {
    *problem = "an allocation of 0 bytes";
    return 0;
  }
  const uint64_t limit = chip().global_memory;
  if (bytes > limit || a.in_use + bytes > limit) {
    *problem = "out of device memory: " + gib(bytes) + " asked for, " + gib(a.in_use) + " in use of the chip's " + gib(limit);
    return 0;
  }
  if (bytes >= (uint64_t(64) << 20)) {
    const uint64_t machine = machine_available();
    if (bytes > machine) {
      *problem = "out of memory: " + gib(bytes) + " of device memory asked for, but this machine has only " + gib(machine) + " left";
      return 0;
    }
  }
  const bool shared = flags & kShared, small = !shared && is_small(a, bytes);
  const uint64_t at = shared ? allocate_shared(a, bytes) : small ? allocate_small(a, bytes) : allocate_large(a, bytes);
  if (at == ~0ull) {
    *problem = "out of memory: the system does not give " + gib(bytes) + " more";
    return 0;
  }
  // Fresh pages are zero already.  Poison makes pages resident, so of a big allocation only the start gets it:
  // programs written for a GPU with 140 GB ask for more than they use.
  constexpr uint64_t kPoisoned = uint64_t(256) << 20;
  if (options().poison || small) std::memset(a.host + at, int(options().poison), std::min(bytes, kPoisoned));
  Allocation out;
  out.base = a.device + at;
  out.size = bytes;
  out.number = ++a.numbers;
  out.flags = flags;
  if (label) out.label = label;
  if (!(flags & (kHeap | kHidden))) {
    a.in_use += bytes;
    a.peak = std::max(a.peak, a.in_use);
  }
  a.freed.erase(out.base);
  const uint64_t base = out.base;
  a.live[base] = std::move(out);
  ++a.version;
  return base;
}

bool release(uint64_t base) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  auto it = a.live.find(base);
  if (it == a.live.end() || (it->second.flags & (kHeap | kHidden | kRegistered))) return false;
  if (it->second.flags & kShared) release_shared(a, base - a.device, it->second.size);
  else release_memory(a, base - a.device, it->second.size);
  a.in_use -= it->second.size;
  a.freed[base] = std::move(it->second);
  a.live.erase(it);
  a.freed_order.push_back(base);
  if (a.freed_order.size() > kMaxFreed) {
    a.freed.erase(a.freed_order.front());
    a.freed_order.pop_front();
  }
  ++a.version;
  return true;
}

bool add_registered(uint64_t base, uint64_t bytes, const char* label) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  auto next = a.live.lower_bound(base);
  if (next != a.live.end() && next->first < base + bytes) return false;
  if (containing(a.live, base)) return false;
  Allocation out;
  out.base = base;
  out.size = bytes;
  out.number = ++a.numbers;
  out.flags = kRegistered;
  out.label = label;
  a.live[base] = std::move(out);
  ++a.version;
  return true;
}

bool remove_registered(uint64_t base, uint64_t* bytes) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  auto it = a.live.find(base);
  if (it == a.live.end() || !(it->second.flags & kRegistered)) return false;
  *bytes = it->second.size;
  a.live.erase(it);
  ++a.version;
  return true;
}

bool set_flag(uint64_t base, uint32_t flag, bool on) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  auto it = a.live.find(base);
  if (it == a.live.end()) return false;
  it->second.flags = on ? it->second.flags | flag : it->second.flags & ~flag;
  ++a.version;
  return true;
}

bool in_arena(uintptr_t p) {
  const Arena& a = arena();
  return p - reinterpret_cast<uintptr_t>(a.host) < a.size;
}

bool in_device_range(uint64_t address) {
  const Arena& a = arena();
  return address - a.device < a.size;
}

bool find(uint64_t address, Allocation* out) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  const Allocation* p = containing(a.live, address);
  if (p) *out = *p;
  return p != nullptr;
}

bool find_freed(uint64_t address, Allocation* out) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  const Allocation* p = containing(a.freed, address);
  if (p) *out = *p;
  return p != nullptr;
}

bool nearest(uint64_t address, Allocation* out) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  auto next = a.live.upper_bound(address);
  const Allocation* best = nullptr;
  uint64_t distance = ~0ull;
  if (next != a.live.begin()) {
    best = &std::prev(next)->second;
    const uint64_t end = best->base + best->size;
    distance = address >= end ? address - end : 0;
  }
  if (next != a.live.end() && next->first - address <= distance) best = &next->second;
  if (best) *out = *best;
  return best != nullptr;
}

bool try_find(uint64_t address, uint64_t* base, uint64_t* size, uint32_t* number, char* label, size_t label_size) {
  Arena& a = arena();
  if (!a.mutex.try_lock()) return false;
  const Allocation* p = containing(a.live, address);
  if (p) {
    *base = p->base;
    *size = p->size;
    *number = p->number;
    std::snprintf(label, label_size, "%s", p->label.c_str());
  }
  a.mutex.unlock();
  return p != nullptr;
}

void statistics(uint64_t* in_use, uint64_t* count, uint64_t* peak) {
  Arena& a = arena();
  std::lock_guard<std::mutex> lock(a.mutex);
  if (in_use) *in_use = a.in_use;
  auto counts = [](auto& x) { return !(x.second.flags & (kHeap | kHidden | kRegistered)); };
  if (count) *count = uint64_t(std::count_if(a.live.begin(), a.live.end(), counts));
  if (peak) *peak = a.peak;
}

void View::refresh() {
  Arena& a = arena();
  if (a.version.load() == version_) return;
  std::lock_guard<std::mutex> lock(a.mutex);
  version_ = a.version.load();
  spans_.clear();
  bases_.clear();
  for (auto& [base, x] : a.live) {
    spans_.push_back(Span{base, x.size, x.flags});
    bases_.push_back(base);
  }
}

const Span* View::find(uint64_t address) const {
  const auto it = std::upper_bound(bases_.begin(), bases_.end(), address);
  if (it == bases_.begin()) return nullptr;
  const Span& s = spans_[size_t(it - bases_.begin()) - 1];
  return address - s.base < s.size ? &s : nullptr;
}

}  // namespace ws::memory
