// Device memory: an arena of host memory, and the device addresses that stand for it.
//
// A device address is a host address in a second reserved range that nothing is ever mapped into, so host code that
// dereferences one faults and can be told why.  host address = device address + delta.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ws::memory {

// kHeap: the region of device malloc; kHidden: of our own, not for the host program; kShared: the host program can use
// it, at its device address; kRegistered: memory of the host program that kernels can use, at its host address.
enum : uint32_t { kReadOnly = 1, kHeap = 2, kHidden = 4, kShared = 8, kRegistered = 16 };

struct Allocation {
  uint64_t base = 0, size = 0;
  uint32_t number = 0;          // the how manieth of this process
  uint32_t flags = 0;
  std::string label;
};

// Live allocations sorted by address: made before a launch, unchanged while it runs.
struct Span {
  uint64_t base, size;
  uint32_t flags;
};
class View {
 public:
  void refresh();               // before a launch
  const Span* find(uint64_t address) const;

 private:
  std::vector<Span> spans_;
  std::vector<uint64_t> bases_;
  uint64_t version_ = ~0ull;
};

bool init(std::string* problem);
int64_t delta();
inline uint8_t* host(uint64_t device) { return reinterpret_cast<uint8_t*>(device + uint64_t(delta())); }

uint64_t allocate(uint64_t bytes, const char* label, uint32_t flags, std::string* problem);
bool release(uint64_t base);
// Enters memory that is not from the arena into the table; false if it overlaps what is there.  hostmem.cpp maps it.
bool add_registered(uint64_t base, uint64_t bytes, const char* label);
bool remove_registered(uint64_t base, uint64_t* bytes);
bool set_flag(uint64_t base, uint32_t flag, bool on);

// Does this host address lie in the arena / in the range of device addresses?
bool in_arena(uintptr_t host_address);
bool in_device_range(uint64_t address);

// Look-ups for reports and copies.
bool find(uint64_t address, Allocation* out);
bool find_freed(uint64_t address, Allocation* out);
bool nearest(uint64_t address, Allocation* out);
// The same without waiting for a lock (signal handlers); false if it is taken.
bool try_find(uint64_t address, uint64_t* base, uint64_t* size, uint32_t* number, char* label, size_t label_size);

uint64_t machine_available();   // bytes of host memory that can still be used
void statistics(uint64_t* in_use, uint64_t* count, uint64_t* peak);

}  // namespace ws::memory
