// Device memory as the host sees it.
#include <cstring>

#include "launch.h"
#include "memory.h"

using namespace ws;

namespace {

unsigned long long ull(uint64_t v) { return v; }

// Null, or why [address, address + bytes) is not inside one allocation.
std::string outside(uint64_t address, uint64_t bytes, const char* what) {
  memory::Allocation a;
  if (memory::find(address, &a) && !(a.flags & (memory::kHeap | memory::kHidden))) {
    const uint64_t room = a.base + a.size - address;
    if (bytes <= room) return "";
    return format("%s of %llu bytes at 0x%llx: only %llu remain in the ", what, ull(bytes), ull(address), ull(room)) +
           describe_allocation(a.size, a.label, a.number);
  }
  uint64_t base, size;
  return format("%s at 0x%llx, which is not in device memory: ", what, ull(address)) + describe_address(address, &base, &size);
}

int host_side(const void* p, const char* what) {
  memory::Allocation a;
  const auto address = reinterpret_cast<uint64_t>(p);
  if (!memory::in_device_range(address) || (memory::find(address, &a) && (a.flags & memory::kShared))) return 0;
  return fail_call(WS_E_OOB, format("%s: the host address %p is a device address (wrong direction of the copy?)", what, p));
}

uint64_t allocate(uint64_t bytes, const char* label, uint32_t flags) {
  std::string problem;
  const uint64_t p = memory::init(&problem) ? memory::allocate(bytes, label, flags, &problem) : 0;
  if (!p) fail_call(WS_E_MEMORY, problem);
  return p;
}

}  // namespace

uint64_t ws_malloc(uint64_t bytes, const char* label) { return allocate(bytes, label, 0); }

uint64_t ws_malloc_managed(uint64_t bytes, const char* label) { return allocate(bytes, label, memory::kShared); }

int ws_free(uint64_t address) {
  std::lock_guard<std::mutex> lock(launch_mutex());  // as on a device: a running kernel may still use it
  if (memory::release(address)) return 0;
  memory::Allocation a;
  std::string why = "it does not come from an allocation";
  if (memory::find_freed(address, &a) && a.base == address) why = "it has been freed already";
  else if (memory::find(address, &a)) why = format("it lies %llu bytes into the ", ull(address - a.base)) + describe_allocation(a.size, a.label, a.number);
  return fail_call(WS_E_MEMORY, format("free of 0x%llx: %s", ull(address), why.c_str()));
}

int ws_copy_in(uint64_t to, const void* from, uint64_t bytes) {
  if (!bytes) return 0;
  const std::string problem = outside(to, bytes, "copy to device memory");
  if (!problem.empty()) return fail_call(WS_E_OOB, problem);
  if (const int code = host_side(from, "copy to device memory")) return code;
  std::memcpy(memory::host(to), from, bytes);
  return 0;
}

int ws_copy_out(void* to, uint64_t from, uint64_t bytes) {
  if (!bytes) return 0;
  const std::string problem = outside(from, bytes, "copy from device memory");
  if (!problem.empty()) return fail_call(WS_E_OOB, problem);
  if (const int code = host_side(to, "copy from device memory")) return code;
  std::memcpy(to, memory::host(from), bytes);
  return 0;
}

int ws_copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (!bytes) return 0;
  std::string problem = outside(from, bytes, "copy from device memory");
  if (problem.empty()) problem = outside(to, bytes, "copy to device memory");
  if (!problem.empty()) return fail_call(WS_E_OOB, problem);
  std::memmove(memory::host(to), memory::host(from), bytes);
  return 0;
}

int ws_fill(uint64_t to, uint8_t value, uint64_t bytes) {
  if (!bytes) return 0;
  const std::string problem = outside(to, bytes, "fill of device memory");
  if (!problem.empty()) return fail_call(WS_E_OOB, problem);
  std::memset(memory::host(to), value, bytes);
  return 0;
}

int ws_find(uint64_t address, uint64_t* base, uint64_t* size) {
  memory::Allocation a;
  if (!memory::find(address, &a) || (a.flags & (memory::kHeap | memory::kHidden))) return 0;
  if (base) *base = a.base;
  if (size) *size = a.size;
  return 1;
}

const char* ws_describe(uint64_t address) {
  static thread_local std::string text;
  uint64_t base, size;
  return (text = describe_address(address, &base, &size)).c_str();
}

void ws_memory(uint64_t* in_use, uint64_t* allocations, uint64_t* peak) { memory::statistics(in_use, allocations, peak); }

uint64_t ws_available() {
  uint64_t in_use;
  memory::statistics(&in_use, nullptr, nullptr);
  const uint64_t limit = chip().global_memory;
  return std::min(limit > in_use ? limit - in_use : 0, memory::machine_available());
}

int ws_set_readonly(uint64_t address, uint32_t on) {
  if (memory::set_flag(address, memory::kReadOnly, on != 0)) return 0;
  return fail_call(WS_E_MEMORY, format("0x%llx is not the start of an allocation", ull(address)));
}
