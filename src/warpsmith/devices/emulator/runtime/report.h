// What went wrong, in words: where, who, which allocation.
#pragma once
#include <cstdint>
#include <string>

#include "state.h"

namespace ws {

// An error that a warp ran into.
struct Failure {
  uint32_t code = 0;
  uint32_t site = kNone;
  uint32_t lanes = 0;           // lanes concerned
  std::string what;             // the headline
};

// Records the failure (unless another one came first) and ends the launch; the calling fiber is dropped.
[[noreturn]] void fail(Warp& w, const Failure& f);
// The same for a memory access; `problem` says what is wrong with it, `lane` is the first one concerned.
struct BadAccess {
  uint32_t code, site, lanes, space, kind, bytes;
  uint64_t address;
};
[[noreturn]] void fail_access(Warp& w, const BadAccess& a);
// For a thread that is not on a fiber any more: records only.
void record(Warp& w, const Failure& f, const BadAccess* access, const std::string& likely = {});

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
// "saxpy.cu:12 (ld.global.f32)"
std::string describe_site(const ws_kernel_info* info, uint32_t site);
// "3 bytes past the end of the 4096-byte allocation ...", also null and freed addresses.
std::string describe_address(uint64_t address, uint64_t* near_base, uint64_t* near_size);
std::string describe_allocation(uint64_t size, const std::string& label, uint32_t number);
const char* space_name(uint32_t space);
const char* access_name(uint32_t kind);
std::string position(const uint32_t p[3]);  // "(1,2,3)"
std::string plural(uint64_t n, const char* noun);
std::string lane_list(uint32_t mask);  // "0-15, 31"

}  // namespace ws
