#include "launch.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "check.h"
#include "faults.h"
#include "heap.h"
#include "memory.h"
#include "output.h"
#include "pool.h"
#include "scheduler.h"

namespace ws {

std::atomic<bool> g_stop{false};
std::atomic<bool> g_interrupted{false};

namespace {

ws_chip g_chip = {132, 1024, 64, 32, 65536, 233472, 49152, 232448, uint64_t(141) << 30, {0x7fffffff, 65535, 65535}, {1024, 1024, 64}};
ws_options g_options = {};
thread_local std::string t_message;
std::atomic<bool> g_running{false};
std::mutex g_launch_mutex;      // one launch at a time
uint64_t g_launches = 0;
uint64_t g_workspace = 0;       // the words that grid barriers count in

constexpr uint32_t kReservedShared = 1024;  // of every block, by the system
constexpr uint32_t kParamRoom = 32768;

uint64_t product(const uint32_t d[3]) { return uint64_t(d[0]) * d[1] * d[2]; }
uint32_t round_up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }
std::string dims(const uint32_t d[3]) { return format("(%u,%u,%u)", d[0], d[1], d[2]); }

// Why this launch cannot be; empty if it can.
std::string refuse(const ws_kernel_info& info, const ws_launch_config& c) {
  const std::string name = std::string("kernel ") + info.name + ": ";
  const uint64_t threads = product(c.block);
  for (int i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (!c.grid[i] || !c.block[i])
      return name + format("grid %s and block %s must not have a zero dimension", dims(c.grid).c_str(), dims(c.block).c_str());
    if (c.block[i] > g_chip.max_block[i])
      return name + format("block %s is too large: at most %u threads in %c", dims(c.block).c_str(), g_chip.max_block[i], axis);
    if (c.grid[i] > g_chip.max_grid[i])
      return name + format("grid %s is too large: at most %u blocks in %c", dims(c.grid).c_str(), g_chip.max_grid[i], axis);
  }
  if (threads > g_chip.max_threads_per_block || threads > kMaxWarps * WS_LANES)
    return name + format("a block of %s is %llu threads; at most %u are allowed", dims(c.block).c_str(),
                         static_cast<unsigned long long>(threads), g_chip.max_threads_per_block);
  const uint64_t required = product(info.reqntid), most = product(info.maxntid);
  if (required && !std::equal(c.block, c.block + 3, info.reqntid))
    return name + format("it is compiled for blocks of %s, not %s", dims(info.reqntid).c_str(), dims(c.block).c_str());
  if (most && threads > most)
    return name + format("it is compiled for at most %llu threads a block (__launch_bounds__), not %llu",
                         static_cast<unsigned long long>(most), static_cast<unsigned long long>(threads));
  const uint64_t shared = uint64_t(info.static_shared) + c.dynamic_shared;
  if (shared > g_chip.shared_per_block_optin)
    return name + format("a block needs %llu bytes of shared memory (%u static, %u dynamic); the chip has %u",
                         static_cast<unsigned long long>(shared), info.static_shared, c.dynamic_shared, g_chip.shared_per_block_optin);
  const uint32_t warps = round_up(uint32_t(threads), WS_LANES) / WS_LANES;
  if (c.registers && uint64_t(round_up(c.registers * WS_LANES, 256)) * round_up(warps, 4) > g_chip.registers_per_sm)
    return name + format("too many resources: %u registers a thread in blocks of %llu threads; an SM has %u", c.registers,
                         static_cast<unsigned long long>(threads), g_chip.registers_per_sm);
  if (c.cooperative) {
    const uint64_t blocks = product(c.grid), resident = ws_resident_blocks(&info, &c);
    if (blocks > resident * g_chip.sm_count)
      return name + format("a cooperative launch needs all blocks at once: grid of %llu blocks, but %u SMs x %llu resident blocks = %llu",
                           static_cast<unsigned long long>(blocks), g_chip.sm_count, static_cast<unsigned long long>(resident),
                           static_cast<unsigned long long>(resident * g_chip.sm_count));
  }
  return "";
}

// A permutation of [0, n) without a table: a Feistel network on the next power of four, walked until it falls inside.
uint64_t permute(uint64_t x, uint64_t n, uint32_t seed) {
  uint32_t half = 1;
  while ((uint64_t(1) << (2 * half)) < n) ++half;
  const uint64_t mask = (uint64_t(1) << half) - 1;
  do {
    uint64_t left = x >> half, right = x & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      uint64_t f = (right + 0x9e3779b97f4a7c15ull * (seed + round + 1)) * 0xff51afd7ed558ccdull;
      f ^= f >> 32;
      const uint64_t next = left ^ (f & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= n);
  return x;
}

uint64_t grid_workspace(std::string* problem) {
  if (!g_workspace) g_workspace = memory::allocate(4096, "grid barrier", memory::kHidden, problem);
  if (g_workspace) std::memset(memory::host(g_workspace), 0, 4096);
  return g_workspace;
}

void finish_error(Launch& l) {
  ws_error& e = l.error;
  if (l.deadlock.pending) {
    e = ws_error{};
    e.code = WS_E_DEADLOCK;
    e.site = kNone;
    if (!l.deadlock.places.empty()) {
      const auto& p = l.deadlock.places.front();
      e.site = p.site;
      e.lanes = p.lanes;
      std::copy(p.block, p.block + 3, e.block);
      std::copy(p.thread, p.thread + 3, e.thread);
    }
    const uint64_t started = std::min<uint64_t>(l.next.load(), l.blocks);
    l.deadlock.not_started = l.blocks - started;
    std::snprintf(e.message, sizeof e.message, "%s", l.deadlock.text(l).c_str());
  }
  if (!e.code && g_interrupted.load()) {
    e = ws_error{};
    e.code = WS_E_INTERRUPT;
    e.site = kNone;
    std::snprintf(e.message, sizeof e.message, "kernel %s was interrupted", l.info->name);
  }
}

}  // namespace

const ws_chip& chip() { return g_chip; }
const ws_options& options() { return g_options; }

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

int fail_call(int code, const std::string& message) {
  t_message = message;
  return code;
}

std::mutex& launch_mutex() { return g_launch_mutex; }

uint64_t Launch::place(uint64_t n) const {
  if (order == 1) return blocks - 1 - n;
  if (order == 2) return permute(n, blocks, seed);
  return n;
}

}  // namespace ws

using namespace ws;

int ws_init(const ws_chip* c, const ws_options* o) {
  std::string problem;
  if (!memory::init(&problem)) return fail_call(WS_E_MEMORY, problem);
  std::lock_guard<std::mutex> lock(g_launch_mutex);
  if (c) g_chip = *c;
  if (o) g_options = *o;
  return 0;
}

const char* ws_last_message() { return t_message.c_str(); }

uint32_t ws_resident_blocks(const ws_kernel_info* info, const ws_launch_config* c) {
  const uint32_t threads = uint32_t(product(c->block));
  if (!threads) return 0;
  const uint32_t warps = round_up(threads, WS_LANES) / WS_LANES;
  uint32_t blocks = std::min(g_chip.max_blocks_per_sm, g_chip.max_warps_per_sm / warps);
  if (c->registers) {
    // A warp's registers come in units of 256 and from one of the four parts of the SM.
    const uint32_t each = round_up(c->registers * WS_LANES, 256);
    if (c->registers > 255 || each * round_up(warps, 4) > g_chip.registers_per_sm) return 0;
    blocks = std::min(blocks, 4 * (g_chip.registers_per_sm / 4 / each) / warps);
  }
  if (info->static_shared + c->dynamic_shared > g_chip.shared_per_block_optin) return 0;
  const uint32_t shared = round_up(info->static_shared + c->dynamic_shared + kReservedShared, 128);
  return std::min(blocks, g_chip.shared_per_sm / shared);
}

int ws_launch(const ws_kernel_info* info, const uint64_t* vars, const ws_launch_config* config, const void* params, ws_launch_result* result) {
  ws_launch_result unused;
  if (!result) result = &unused;
  *result = ws_launch_result{};
  auto refused = [&](uint32_t code, const std::string& why) {
    result->error.code = code;
    result->error.site = kNone;
    std::snprintf(result->error.message, sizeof result->error.message, "%s", why.c_str());
    return fail_call(int(code), why);
  };
  if (info->abi != WS_ABI_VERSION)
    return refused(WS_E_LAUNCH, format("kernel was compiled for version %u of the emulator's interface, this is version %u", info->abi, WS_ABI_VERSION));
  std::string problem;
  if (!memory::init(&problem)) return refused(WS_E_MEMORY, problem);
  std::lock_guard<std::mutex> lock(g_launch_mutex);
  problem = refuse(*info, *config);
  if (!problem.empty()) return refused(WS_E_LAUNCH, problem);

  Launch l;
  l.id = ++g_launches;
  l.info = info;
  l.config = config;
  l.vars = vars;
  l.sm_count = std::max(1u, g_chip.sm_count);
  l.shared_size = info->static_shared + config->dynamic_shared;
  l.threads_per_block = uint32_t(product(config->block));
  l.warps_per_block = round_up(l.threads_per_block, WS_LANES) / WS_LANES;
  l.blocks = product(config->grid);
  l.check = g_options.check != 0;
  l.poison = uint8_t(g_options.poison);
  l.patience_ns = uint64_t(g_options.patience_ms ? g_options.patience_ms : 500) * 1000000u;
  l.delta = memory::delta();
  l.order = g_options.order;
  l.seed = g_options.seed;
  const uint32_t threads = g_options.threads ? g_options.threads : available_cores();
  l.worker_count = uint32_t(std::min<uint64_t>(threads, l.blocks));
  l.single = l.worker_count == 1;
  l.chunk = config->cooperative ? (l.blocks + l.worker_count - 1) / l.worker_count
                                : std::clamp<uint64_t>(l.blocks / (uint64_t(l.worker_count) * 256), 1, 16);
  if (config->cooperative && !(l.workspace = grid_workspace(&problem))) return refused(WS_E_MEMORY, problem);
  std::vector<uint8_t> room(std::max(kParamRoom, info->param_bytes + 16) + 64);
  l.params = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
  if (info->param_bytes) std::memcpy(l.params, params, info->param_bytes);

  view().refresh();
  g_stop = false;
  g_interrupted = false;
  g_running = true;
  const uint64_t start = now_ns();
  {
    install_fault_handlers();
    InterruptGuard guard;
    run_on_workers(l);
  }
  result->nanoseconds = now_ns() - start;
  g_running = false;
  finish_error(l);
  heap::unwatch();
  for (Worker* k : l.joined) {
    result->instructions += k->instructions();
    k->end();
  }
  flush_output();
  result->blocks = l.blocks;
  result->warps = l.blocks * l.warps_per_block;
  result->threads = l.blocks * l.threads_per_block;
  result->worker_threads = uint32_t(l.joined.size());
  result->error = l.error;
  return l.error.code ? fail_call(int(l.error.code), l.error.message) : 0;
}

void ws_interrupt() {
  if (!g_running.load()) return;
  g_interrupted = true;
  g_stop = true;
}
