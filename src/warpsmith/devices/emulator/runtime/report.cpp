#include "report.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "check.h"
#include "groups.h"
#include "heap.h"
#include "memory.h"
#include "scheduler.h"

namespace ws {

namespace {

unsigned long long ull(uint64_t v) { return v; }

const ws_site* site_of(const ws_kernel_info* info, uint32_t site) {
  return site < info->site_count ? &info->sites[site] : nullptr;
}

// Is there memory of the host process at this address?  (mincore fails with ENOMEM where nothing is mapped.)
bool host_has(uint64_t address) {
  unsigned char one;
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  return address < (uint64_t(1) << 47) && mincore(reinterpret_cast<void*>(address / page * page), page, &one) == 0;
}

// The text of a source line, as an editor shows it; empty if the file cannot be read (or is a name without a folder).
std::string source_text(const ws_site& s) {
  std::string out;
  std::FILE* file = s.file && s.file[0] == '/' && s.line ? std::fopen(s.file, "r") : nullptr;
  if (!file) return out;
  char text[256];
  uint32_t line = 1;
  while (std::fgets(text, sizeof text, file)) {
    const bool ends = std::strchr(text, '\n') != nullptr;
    if (line == s.line) {
      text[std::strcspn(text, "\r\n")] = '\0';
      out = format("\n    %u | %s", line, text);
      break;
    }
    line += ends;
  }
  std::fclose(file);
  return out;
}

// What most often lies behind such an access; empty where nothing is likely.
const char* likely_cause(const BadAccess& a, uint64_t base, uint64_t size) {
  if (a.code == WS_E_MISALIGNED)
    return a.bytes > 4 ? "a vector access through a pointer that was cast from a smaller type: every address must be a multiple of its size"
                       : "a pointer that was cast from a smaller type";
  if (a.code == WS_E_NULL) return "a pointer that was never set, or an allocation whose failure nobody looked at";
  if (a.code == WS_E_READONLY) return "a write through a pointer to __constant__ memory";
  if (a.space == WS_SHARED) return "an index beyond the shared array, or too little dynamic shared memory given at the launch";
  if (a.space == WS_LOCAL) return "an index beyond a local array";
  if (a.code != WS_E_OOB || !size) return nullptr;
  if (a.address >= base + size && a.address - base - size < 65536)
    return "threads beyond the end of the data are not kept out: a guard such as if (i < n) is missing or off by one";
  if (a.address < base && base - a.address < 65536) return "a negative index";
  if (a.address >= base && a.address < base + size) return "an access that is wider than what is left of the array";
  return nullptr;
}

// The second and third line of a report: where in the code, which threads.
std::string place_of(const Warp& w, uint32_t site, uint32_t lanes) {
  const Launch& l = *w.block->launch;
  const ws_kernel_info* info = l.info;
  const ws_site* s = site_of(info, site);
  std::string out = "\n  in kernel " + std::string(info->name);
  if (s) {
    if (s->function && std::strcmp(s->function, info->name) != 0) out += ", function " + std::string(s->function);
    out += ", at " + describe_site(info, site) + source_text(*s);
  }
  if (!lanes) return out;
  const uint32_t lane = uint32_t(__builtin_ctz(lanes));
  const uint32_t thread[3] = {w.tid[0][lane], w.tid[1][lane], w.tid[2][lane]};
  out += "\n  by thread " + position(thread) + " of block " + position(w.block->index);
  if (const int more = __builtin_popcount(lanes) - 1) out += format(" and %d more thread%s of its warp", more, more > 1 ? "s" : "");
  return out;
}

}  // namespace

std::string format(const char* pattern, ...) {
  va_list args, again;
  va_start(args, pattern);
  va_copy(again, args);
  std::string out(size_t(std::vsnprintf(nullptr, 0, pattern, args)), '\0');
  va_end(args);
  std::vsnprintf(out.data(), out.size() + 1, pattern, again);
  va_end(again);
  return out;
}

std::string position(const uint32_t p[3]) { return format("(%u,%u,%u)", p[0], p[1], p[2]); }

std::string plural(uint64_t n, const char* noun) { return format("%llu %s%s", ull(n), noun, n == 1 ? "" : "s"); }

std::string lane_list(uint32_t mask) {
  std::string out;
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    int j = i;
    while (j < 31 && (mask >> (j + 1) & 1)) ++j;
    if (!out.empty()) out += ", ";
    out += i == j ? format("%d", i) : format("%d-%d", i, j);
    i = j;
  }
  return out;
}

const char* space_name(uint32_t space) {
  static const char* const names[] = {"generic", "global", "shared", "local", "constant", "parameter"};
  return space < 6 ? names[space] : "?";
}

const char* access_name(uint32_t kind) {
  return kind == WS_LOAD ? "read" : kind == WS_STORE ? "write" : "atomic operation";
}

std::string describe_site(const ws_kernel_info* info, uint32_t site) {
  const ws_site* s = site_of(info, site);
  if (!s) return "an unknown place";
  std::string out;
  if (s->file && s->line) out = format("%s:%u (%s, PTX line %u)", s->file, s->line, s->text ? s->text : "?", s->ptx_line);
  else out = format("PTX line %u (%s)", s->ptx_line, s->text ? s->text : "?");
  return out;
}

std::string describe_allocation(uint64_t size, const std::string& label, uint32_t number) {
  if (label.empty()) return format("%llu-byte allocation #%u", ull(size), number);
  return format("%llu-byte allocation \"%s\"", ull(size), label.c_str());
}

std::string describe_address(uint64_t address, uint64_t* near_base, uint64_t* near_size) {
  *near_base = *near_size = 0;
  if (address == 0) return "it is the null pointer";
  if (address < 65536) return format("it is the null pointer plus %llu", ull(address));
  heap::Piece piece;
  if (heap::find_freed(address, &piece))
    return format("it lies in a block of %llu bytes from malloc that has been freed", ull(piece.size));
  memory::Allocation a;
  if (memory::find(address, &a)) {
    *near_base = a.base;
    *near_size = a.size;
    if (a.flags & memory::kHeap) return "it lies in the heap of malloc, but in no live block";
    return format("it lies %llu bytes into the ", ull(address - a.base)) + describe_allocation(a.size, a.label, a.number);
  }
  if (memory::find_freed(address, &a))
    return format("it lies %llu bytes into the ", ull(address - a.base)) + describe_allocation(a.size, a.label, a.number) + ", which has been freed";
  if (memory::nearest(address, &a)) {
    const bool after = address >= a.base;
    const uint64_t distance = after ? address - a.base - a.size : a.base - address;
    if (distance < (uint64_t(1) << 32)) {
      *near_base = a.base;
      *near_size = a.size;
      const std::string words = describe_allocation(a.size, a.label, a.number);
      if (after && distance == 0) return "it is just past the end of the " + words;
      return plural(distance, "byte") + (after ? " past the end of the " : " before the start of the ") + words;
    }
  }
  if (!memory::in_device_range(address) && host_has(address)) return "it is memory of the host program: pass a pointer to device memory (cudaMalloc)";
  return "no allocation is near it";
}

void record(Warp& w, const Failure& f, const BadAccess* access, const std::string& likely) {
  Launch& l = *block_of(&w).launch;
  if (l.failed.exchange(true)) return;
  ws_error& e = l.error;
  e = ws_error{};
  e.code = f.code;
  e.site = f.site;
  e.lanes = f.lanes;
  std::copy(w.block->index, w.block->index + 3, e.block);
  if (f.lanes)
    for (int i = 0; i < 3; ++i) e.thread[i] = w.tid[i][__builtin_ctz(f.lanes)];
  std::string what = f.what, after;
  if (access) {
    e.space = access->space;
    e.kind = access->kind;
    e.bytes = access->bytes;
    e.address = access->address;
  }
  if (!likely.empty()) after = "\n  likely: " + likely;
  std::snprintf(e.message, sizeof e.message, "%s%s%s", what.c_str(), place_of(w, f.site, f.lanes).c_str(), after.c_str());
  g_stop = true;
}

void fail(Warp& w, const Failure& f) {
  record(w, f, nullptr);
  block_of(&w).worker->abandon();
}

namespace {

std::string access_problem(const Warp& w, const BadAccess& a, uint64_t* base, uint64_t* size) {
  uint64_t offset = a.address;
  uint32_t space = a.space;
  if (space == WS_GENERIC) {
    const uint64_t window = a.address & ~(WS_WINDOW_SIZE - 1);
    space = window == WS_SHARED_WINDOW ? WS_SHARED : window == WS_LOCAL_WINDOW ? WS_LOCAL : window == WS_PARAM_WINDOW ? WS_PARAM : WS_GLOBAL;
    if (space != WS_GLOBAL) offset -= window;
  }
  const std::string access = format("%s of %s", access_name(a.kind), plural(a.bytes, "byte").c_str());
  if (space == WS_SHARED || space == WS_LOCAL || space == WS_PARAM) {
    const uint32_t room = space == WS_SHARED ? w.shared_size : space == WS_LOCAL ? w.local_size : w.block->launch->info->param_bytes;
    const std::string at = format("at 0x%llx in %s memory", ull(offset), space_name(space));
    if (a.code == WS_E_MISALIGNED) return "misaligned " + access + " " + at + format(": it is not a multiple of %u", std::min(a.bytes, 16u));
    std::string out = "out-of-bounds " + access + " " + at;
    out += room ? format(", of which %s has %u bytes", space == WS_SHARED ? "the block" : space == WS_LOCAL ? "a thread" : "the kernel", room)
                : format(", of which there is none");
    return out;
  }
  const std::string at = format(" at 0x%llx", ull(a.address));
  const std::string where = describe_address(a.address, base, size);
  switch (a.code) {
    case WS_E_MISALIGNED:
      return "misaligned " + access + at + format(": the address is not a multiple of %u; ", std::min(a.bytes, 16u)) + where;
    case WS_E_NULL: return access + " through a null pointer" + at + (a.address ? ": " + where : "");
    case WS_E_READONLY: return access + " to constant memory" + at + ": " + where;
    default: break;
  }
  // The first byte may be inside and only the last one outside.
  memory::Allocation in;
  if (memory::find(a.address, &in) && !(in.flags & memory::kHeap) && a.code == WS_E_OOB)
    return "out-of-bounds " + access + at + ": only " + plural(in.base + in.size - a.address, "byte") + " remain in the " +
           describe_allocation(in.size, in.label, in.number);
  return "out-of-bounds " + access + at + ": " + where;
}

}  // namespace

void fail_access(Warp& w, const BadAccess& a) {
  uint64_t base = 0, size = 0;
  {
    const Failure f{a.code, a.site, a.lanes, access_problem(w, a, &base, &size)};
    Launch& l = *block_of(&w).launch;
    const char* cause = likely_cause(a, base, size);
    record(w, f, &a, cause ? cause : "");
    if (l.error.address == a.address && l.error.site == a.site) {
      l.error.near_base = base;
      l.error.near_size = size;
    }
  }
  block_of(&w).worker->abandon();
}

}  // namespace ws

using namespace ws;

void ws_fail(ws_warp* w, uint32_t site, uint32_t mask, uint32_t code, const char* message) {
  if (!mask) return;
  fail(warp_of(w), Failure{code, site, mask, message});
}
