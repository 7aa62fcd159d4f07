// Host memory that kernels may use at its own address (cudaHostRegister).
//
// Kernels reach a device address through address + delta.  So the pages of the host memory are replaced by shared
// ones with the same contents, which are then mapped a second time there.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "launch.h"
#include "memory.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

using namespace ws;

namespace {

std::mutex g_mutex;
std::map<uint64_t, uint32_t>& shared_pages() {  // page -> registrations that need it
  static auto& pages = *new std::map<uint64_t, uint32_t>;
  return pages;
}

void* alias(uint64_t address) { return memory::host(address); }

// Makes [from, to) shared and maps it for kernels.
bool share(uint64_t from, uint64_t to) {
  const size_t size = to - from;
  const int fd = int(syscall(SYS_memfd_create, "warpsmith", MFD_CLOEXEC));
  if (fd < 0) return false;
  bool ok = ftruncate(fd, off_t(size)) == 0;
  for (size_t done = 0; ok && done < size;) {
    const ssize_t n = pwrite(fd, reinterpret_cast<void*>(from + done), size - done, off_t(done));
    ok = n > 0;
    done += ok ? size_t(n) : 0;
  }
  const int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
  void* second = ok ? mmap(alias(from), size, PROT_READ | PROT_WRITE, flags, fd, 0) : MAP_FAILED;
  ok = second == alias(from);
  if (second != MAP_FAILED && !ok) munmap(second, size);
  if (ok && mmap(reinterpret_cast<void*>(from), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    munmap(alias(from), size);
    ok = false;
  }
  close(fd);
  return ok;
}

void forget(uint64_t from, uint64_t to, uint64_t page) {
  auto& pages = shared_pages();
  for (uint64_t p = from; p < to; p += page) {
    auto it = pages.find(p);
    if (it == pages.end() || --it->second) continue;
    munmap(alias(p), page);  // the host side stays as it is: shared with nobody
    pages.erase(it);
  }
}

}  // namespace

int ws_register_host(void* host, uint64_t bytes) {
  std::string problem;
  if (!memory::init(&problem)) return fail_call(WS_E_MEMORY, problem);
  const auto start = reinterpret_cast<uint64_t>(host), page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t from = start / page * page, to = (start + bytes + page - 1) / page * page;
  if (!start || !bytes) return fail_call(WS_E_MEMORY, "there is no host memory to register");
  if (from - WS_SHARED_WINDOW < 3 * WS_WINDOW_SIZE)
    return fail_call(WS_E_MEMORY, format("host memory at %p lies where shared and local memory have their addresses on the device", host));
  const auto here = reinterpret_cast<uint64_t>(&problem);
  if (from < here + page && here < to + (page << 4))
    return fail_call(WS_E_MEMORY, "memory on the stack of the calling function cannot be registered: allocate it");
  std::lock_guard<std::mutex> lock(g_mutex);
  if (!memory::add_registered(start, bytes, "cudaHostRegister")) return fail_call(WS_E_MEMORY, "this memory is registered, or device memory, already");
  auto& pages = shared_pages();
  for (uint64_t p = from; p < to;) {
    uint64_t end = p;
    while (end < to && !pages.count(end)) end += page;
    if (end > p && !share(p, end)) {
      uint64_t unused;
      memory::remove_registered(start, &unused);
      forget(from, p, page);
      return fail_call(WS_E_MEMORY, format("host memory at %p cannot be shared with kernels (is all of it readable and writable?)", host));
    }
    for (; p < end; p += page) pages[p] = 1;
    for (; p < to && pages.count(p); p += page) ++pages[p];
  }
  return 0;
}

int ws_unregister_host(void* host) {
  std::lock_guard<std::mutex> launches(launch_mutex());
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto start = reinterpret_cast<uint64_t>(host), page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t bytes;
  if (!memory::remove_registered(start, &bytes)) return fail_call(WS_E_MEMORY, format("host memory at %p is not registered", host));
  forget(start / page * page, (start + bytes + page - 1) / page * page, page);
  return 0;
}
