// Addresses of the lanes of a warp -> host memory.
#pragma once
#include "memory.h"
#include "state.h"

namespace ws {

// Ends the launch with a report unless every lane of mask may access `bytes` bytes at its address.  remember: compiled
// code need not ask again for what this site accesses in the same allocation; not for sites that access more or less.
void check_access(Warp& w, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, uint32_t align, const uint64_t* addr, uint32_t mask,
                  bool remember = true);

// Host address of a checked access.
inline uint8_t* host_address(const ws_warp& w, uint32_t space, uint64_t address, uint32_t lane) {
  if (space == WS_GENERIC && address - WS_SHARED_WINDOW < 3 * WS_WINDOW_SIZE) {
    space = address < WS_LOCAL_WINDOW ? WS_SHARED : address < WS_PARAM_WINDOW ? WS_LOCAL : WS_PARAM;
    address &= 0xffffffffu;
  }
  switch (space) {
    case WS_SHARED: return w.shared + address;
    case WS_LOCAL: return w.local + size_t(lane) * w.local_size + address;
    case WS_PARAM: return w.params + address;
    default: return memory::host(address);
  }
}

// The allocation that [address, address + bytes) lies in, also one from device malloc.
struct Place {
  uint64_t base = 0, size = 0;
  uint32_t flags = 0;
};
bool locate(uint64_t address, uint64_t bytes, Place* out);

// Reads a zero-terminated string of the device; an unreadable address gives a description of itself.
std::string read_string(Warp& w, uint64_t address, uint32_t lane, size_t most = 65536);

memory::View& view();           // of the running launch

}  // namespace ws
