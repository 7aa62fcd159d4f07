// Kernels as the compiler would make them, written by hand: each drives one part of the runtime.
//
// A kernel is a small machine: `rank` is the place in the code, `mask` the lanes there, exactly as in compiled PTX.
#include <cstring>

#include "abi.h"

namespace {

const ws_site kSites[] = {
    {10, 1, "kernels.cu", "bar.sync 0", "k"},       // 0
    {20, 2, "kernels.cu", "bar.sync 1, 64", "k"},   // 1
    {30, 3, "kernels.cu", "bar.sync 2, 64", "k"},   // 2
    {40, 4, "kernels.cu", "ld.global.u32", "k"},    // 3
    {50, 5, "kernels.cu", "st.global.u32", "k"},    // 4
    {60, 6, "kernels.cu", "shfl.sync.idx.b32", "k"},  // 5
    {70, 7, "kernels.cu", "bar.warp.sync", "k"},    // 6
    {80, 0, nullptr, "bra", "helper"},              // 7
    {90, 9, "kernels.cu", "bra", "k"},              // 8
};
enum { kBar0, kBar1, kBar2, kLoad, kStore, kShfl, kSyncwarp, kNowhere, kLoop };

template <class T>
const T& params(const ws_warp* w) {
  return *reinterpret_cast<const T*>(w->params);
}

template <class T>
T* global(const ws_warp* w, uint64_t address) {
  return reinterpret_cast<T*>(address + uint64_t(w->delta));
}

uint64_t thread_in_block(const ws_warp* w, int lane) {
  return w->tid[0][lane] + w->ntid[0] * (w->tid[1][lane] + uint64_t(w->ntid[1]) * w->tid[2][lane]);
}

uint64_t block_in_grid(const ws_warp* w) {
  return w->ctaid[0] + w->nctaid[0] * (w->ctaid[1] + uint64_t(w->nctaid[1]) * w->ctaid[2]);
}

uint64_t thread_in_grid(const ws_warp* w, int lane) {
  return block_in_grid(w) * w->ntid[0] * w->ntid[1] * w->ntid[2] + thread_in_block(w, lane);
}

// One activation: its groups, and registers that the runtime can compare.
template <class State, int Ranks>
struct Activation {
  ws_groups g;
  uint32_t wait[Ranks];
  State s;
  ws_warp* w;

  explicit Activation(ws_warp* warp) : w(warp) {
    std::memset(this, 0, sizeof *this);
    w = warp;
    g.frontier = ~0u;
    g.ranks = Ranks;
    g.state = reinterpret_cast<uint8_t*>(&s);
    g.state_size = sizeof s;
    g.wait = wait;
    g.outer = w->top;
    w->top = &g;
    g.mask = w->live;
  }
  ~Activation() { w->top = g.outer; }

  // A jump of all running lanes.
  uint32_t go(uint32_t from, uint32_t to) {
    if (to <= from && --w->budget == 0) return ws_yield(w, &g, to, g.mask, kLoop);
    return to < g.frontier ? to : ws_dispatch(w, &g, to, g.mask);
  }
  // The same in a loop that waits for nobody.
  void rest(uint32_t rank) {
    if (--w->budget == 0) ws_rest(w, &g, rank, g.mask, kLoop);
  }
  uint32_t split(uint32_t yes, uint32_t yes_mask, uint32_t no) {
    const uint32_t no_mask = g.mask & ~yes_mask;
    yes_mask &= g.mask;
    if (!no_mask) return yes < g.frontier ? yes : ws_dispatch(w, &g, yes, yes_mask);
    if (!yes_mask) return no < g.frontier ? no : ws_dispatch(w, &g, no, no_mask);
    return ws_diverge(w, &g, yes, yes_mask, no, no_mask);
  }
  uint32_t exit() {
    ws_exit(w, g.mask);
    return ws_next(w, &g);
  }
};

struct None {
  uint64_t nothing[4];
};

template <class F>
uint32_t lanes_where(F f) {
  uint32_t m = 0;
  for (int i = 0; i < 32; ++i) m |= uint32_t(f(i)) << i;
  return m;
}

#define EACH(mask, lane) for (uint32_t m_ = (mask), lane; m_ && (lane = uint32_t(__builtin_ctz(m_)), true); m_ &= m_ - 1)

}  // namespace

namespace {

constexpr ws_kernel_info describe(const char* name, void (*entry)(ws_warp*)) {
  ws_kernel_info k{};
  k.abi = WS_ABI_VERSION;
  k.param_bytes = 128;
  k.local_bytes = 64;
  k.stack_bytes = 4096;
  k.site_count = sizeof kSites / sizeof *kSites;
  k.name = name;
  k.entry = entry;
  k.sites = kSites;
  return k;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define KERNEL(kernel)                                                       \
  static void kernel##_entry(ws_warp* w);                                    \
  EXPORT const ws_kernel_info info_##kernel = describe(#kernel, kernel##_entry); \
  static void kernel##_entry([[maybe_unused]] ws_warp* w)

// ---- who runs where ------------------------------------------------------------------------------------

// out[thread] = (ctaid.x, ctaid.y, ctaid.z, tid.x, tid.y, tid.z, warp, lane)
KERNEL(identity) {
  auto* out = global<uint32_t>(w, params<uint64_t>(w));
  EACH(w->live, i) {
    uint32_t* o = out + 8 * thread_in_grid(w, int(i));
    for (int d = 0; d < 3; ++d) o[d] = w->ctaid[d], o[3 + d] = w->tid[d][i];
    o[6] = w->warp_id;
    o[7] = i;
  }
  w->instructions++;
}

KERNEL(nothing) { w->instructions++; }

// out[block] = a ticket: the order in which blocks start.
KERNEL(tickets) {
  struct P { uint64_t counter, out; };
  const auto& p = params<P>(w);
  if (w->warp_id == 0) *(global<uint32_t>(w, p.out) + block_in_grid(w)) = __atomic_fetch_add(global<uint32_t>(w, p.counter), 1, __ATOMIC_SEQ_CST);
}

// ---- barriers ------------------------------------------------------------------------------------------

// out[t] = value of the thread at the other end of the block, `rounds` times
KERNEL(reverse) {
  struct P { uint64_t out; uint32_t rounds; };
  const auto& p = params<P>(w);
  None none{};
  ws_groups g{};
  g.frontier = ~0u;
  g.state = reinterpret_cast<uint8_t*>(&none);
  g.state_size = sizeof none;
  auto* shared = reinterpret_cast<uint32_t*>(w->shared);
  const uint32_t n = w->ntid[0];
  EACH(w->live, i) shared[w->tid[0][i]] = w->tid[0][i];
  for (uint32_t r = 0; r < p.rounds; ++r) {
    uint32_t mine[32];
    ws_barrier(w, &g, 0, 0, -1, w->live, 0, kBar0);
    EACH(w->live, i) mine[i] = shared[n - 1 - w->tid[0][i]] + 1;
    ws_barrier(w, &g, 0, 0, -1, w->live, 0, kBar0);
    EACH(w->live, i) shared[w->tid[0][i]] = mine[i];
  }
  ws_barrier(w, &g, 0, 0, -1, w->live, 0, kBar0);
  EACH(w->live, i) global<uint32_t>(w, p.out)[thread_in_grid(w, int(i))] = shared[w->tid[0][i]];
}

// Odd warps feed even ones through named barriers: arrive on "full", sync on "empty".
KERNEL(pipeline) {
  struct P { uint64_t out; uint32_t rounds; };
  const auto& p = params<P>(w);
  Activation<None, 1> a(w);
  auto* slot = reinterpret_cast<volatile uint32_t*>(w->shared);
  uint32_t sum = 0;
  for (uint32_t r = 0; r < p.rounds; ++r) {
    if (w->warp_id == 1) {
      if (r) ws_barrier(w, &a.g, 0, 2, 64, w->live, 0, kBar2);
      *slot = r;
      ws_barrier(w, &a.g, 1, 1, 64, w->live, 0, kBar1);
    } else {
      ws_barrier(w, &a.g, 0, 1, 64, w->live, 0, kBar1);
      sum += *slot;
      if (r + 1 < p.rounds) ws_barrier(w, &a.g, 1, 2, 64, w->live, 0, kBar2);
    }
  }
  if (w->warp_id == 0) *global<uint32_t>(w, p.out) = sum;
}

// out[warp * 3 + k]: popc, and, or of (thread < limit)
KERNEL(reductions) {
  struct P { uint64_t out; uint32_t limit; };
  const auto& p = params<P>(w);
  Activation<None, 1> a(w);
  const uint32_t value = lanes_where([&](int i) { return thread_in_block(w, i) < p.limit; });
  for (uint32_t k = 0; k < 3; ++k)
    global<uint32_t>(w, p.out)[w->warp_id * 3 + k] = ws_barrier(w, &a.g, 2 + k, 0, -1, w->live, value, kBar0);
}

// Lanes below `limit` of every warp leave; the others meet at a barrier.  out[thread] = 1 for those.
KERNEL(leavers) {
  struct P { uint64_t out; uint32_t limit, warps; };
  const auto& p = params<P>(w);
  Activation<None, 1> a(w);
  if (w->warp_id < p.warps) {
    const uint32_t out = p.limit >= 32 ? ~0u : (1u << p.limit) - 1;
    ws_exit(w, out & w->live);
    if (!w->live) return;
  }
  ws_barrier(w, &a.g, 0, 0, -1, w->live, 0, kBar0);
  EACH(w->live, i) global<uint32_t>(w, p.out)[thread_in_block(w, int(i))] = 1;
}

// Lanes of a warp come to the barrier one group after the other.  mode 1: the upper half leaves instead.
KERNEL(parted_barrier) {
  struct P { uint64_t out; uint32_t mode; };
  const auto& p = params<P>(w);
  Activation<None, 5> a(w);
  uint32_t rank = a.split(1, 0x0000ffff, 2);
  while (rank != WS_DONE) switch (rank) {
    case 1:
      rank = ws_barrier_parted(w, &a.g, 0, -1, a.g.mask, 3, kBar0);
      break;
    case 2:
      rank = p.mode ? a.exit() : ws_barrier_parted(w, &a.g, 0, -1, a.g.mask, 3, kBar0);
      break;
    case 3:
      EACH(a.g.mask, i) global<uint32_t>(w, p.out)[thread_in_block(w, int(i))] = a.g.mask;
      rank = a.exit();
  }
}

// ---- bad synchronisation -------------------------------------------------------------------------------

KERNEL(crossed_barriers) {
  Activation<None, 1> a(w);
  const bool odd = w->warp_id & 1;
  ws_barrier(w, &a.g, 0, odd ? 2 : 1, 64, w->live, 0, odd ? kBar2 : kBar1);
}

// mode 0: an id that does not exist, 1: a count that is no multiple of 32, 2: more than the block has, 3: two counts
KERNEL(bad_barrier) {
  const uint32_t mode = params<uint32_t>(w);
  Activation<None, 1> a(w);
  if (mode == 0) ws_barrier(w, &a.g, 0, 16, -1, w->live, 0, kBar0);
  if (mode == 1) ws_barrier(w, &a.g, 0, 1, 33, w->live, 0, kBar1);
  if (mode == 2) ws_barrier(w, &a.g, 0, 1, 4096, w->live, 0, kBar1);
  if (mode == 3) ws_barrier(w, &a.g, 0, 1, w->warp_id ? 96 : 64, w->live, 0, w->warp_id ? kBar2 : kBar1);
}

// A barrier in a function that half of the warp has called.
KERNEL(half_call) {
  Activation<None, 1> a(w);
  Activation<None, 1> inner(w);
  ws_barrier(w, &inner.g, 0, 0, -1, 0xffff, 0, kBar0);
}

// ---- lanes that meet -----------------------------------------------------------------------------------

// Two halves come to one shfl.sync by different ways.  out[lane] = lanes that ran it together.  mode 1: the upper half
// exits; 2: it waits for a barrier instead, for ever.
KERNEL(meeting) {
  struct P { uint64_t out; uint32_t mode; };
  const auto& p = params<P>(w);
  Activation<None, 5> a(w);
  uint32_t rank = a.split(1, 0x0000ffff, 2);
  while (rank != WS_DONE) switch (rank) {
    case 1: rank = a.go(1, 3); break;
    case 2:
      if (p.mode == 1) rank = a.exit();
      else if (p.mode == 2) rank = ws_syncwarp(w, &a.g, 0xffffffff, a.g.mask, 4, kSyncwarp);
      else rank = a.go(2, 3);
      break;
    case 3:
      if (~a.g.mask & w->live) {
        rank = ws_rendezvous(w, &a.g, ~0u, a.g.mask, 3, kShfl);
        break;
      }
      EACH(a.g.mask, i) global<uint32_t>(w, p.out)[i] = a.g.mask;
      rank = a.exit();
      break;
    case 4: rank = a.exit();
  }
}

// Two halves come to different bar.warp.sync of the same members: both go on.  out[lane] = what the other half wrote.
KERNEL(two_syncwarps) {
  struct P { uint64_t out; uint32_t members; };
  const auto& p = params<P>(w);
  Activation<None, 6> a(w);
  auto* shared = reinterpret_cast<uint32_t*>(w->shared);
  uint32_t rank = a.split(1, 0x0000ffff, 3);
  while (rank != WS_DONE) switch (rank) {
    case 1: case 3: {
      EACH(a.g.mask, i) shared[i] = i + 100 * rank;
      const uint32_t missing = p.members & w->live & ~a.g.mask;
      if (missing) rank = ws_syncwarp(w, &a.g, p.members, a.g.mask, rank + 1, kSyncwarp);
      else rank = a.go(rank, rank + 1);
      break;
    }
    case 2: case 4:
      EACH(a.g.mask, i) global<uint32_t>(w, p.out)[i] = shared[31 - i];
      rank = a.exit();
  }
}

// ---- progress ------------------------------------------------------------------------------------------

// while (atomicCAS(lock, 0, 1)); ++*counter; *lock = 0;  as a compiler lays it out: spin loop first.
// work: back-edges inside the critical section.
KERNEL(spin_lock) {
  struct P { uint64_t lock, counter; uint32_t work; };
  const auto& p = params<P>(w);
  struct Registers { uint32_t old[32], turn; };
  Activation<Registers, 4> a(w);
  uint32_t rank = 0;
  while (rank != WS_DONE) switch (rank) {
    case 0: {
      uint32_t got = 0;
      EACH(a.g.mask, i) {
        uint32_t expected = 0;
        const bool ok = __atomic_compare_exchange_n(global<uint32_t>(w, p.lock), &expected, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        a.s.old[i] = expected;
        got |= uint32_t(ok) << i;
      }
      const uint32_t fail = a.g.mask & ~got;
      if (!got) rank = a.go(0, 0);
      else if (!fail) rank = a.go(0, 1);
      else rank = ws_diverge(w, &a.g, 1, got, 0, fail);
      break;
    }
    case 1: a.s.turn = 0; rank = a.go(1, 2); break;
    case 2:
      for (; a.s.turn < p.work; ++a.s.turn) a.rest(2);
      __atomic_store_n(global<uint32_t>(w, p.counter), *global<uint32_t>(w, p.counter) + 1, __ATOMIC_RELAXED);
      __atomic_store_n(global<uint32_t>(w, p.lock), 0, __ATOMIC_SEQ_CST);
      rank = a.go(2, 3);
      break;
    case 3: rank = a.exit();
  }
}

// Block b waits for flag[b + step] (if that block exists), then sets its own.  count: changes a register all the time.
KERNEL(chain) {
  struct P { uint64_t flags; int32_t step; uint32_t counting; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t seen, turns; };
  Activation<Registers, 2> a(w);
  const int64_t me = int64_t(block_in_grid(w)), other = me + p.step;
  auto* flags = global<uint32_t>(w, p.flags);
  if (other >= 0 && other < int64_t(w->nctaid[0])) {
    for (;;) {
      a.s.seen = __atomic_load_n(flags + other, __ATOMIC_ACQUIRE);
      if (a.s.seen) break;
      if (p.counting) ++a.s.turns;
      a.go(0, 0);
    }
  }
  __atomic_store_n(flags + me, 1, __ATOMIC_RELEASE);
}

// The first warp waits for a flag that the last warp of the same block sets, which sleeps a while.
KERNEL(sleeper) {
  struct P { uint64_t flag; uint32_t naps; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t seen, naps; };
  Activation<Registers, 2> a(w);
  if (w->warp_id == 0) {
    while (!(a.s.seen = __atomic_load_n(global<uint32_t>(w, p.flag), __ATOMIC_ACQUIRE))) a.go(0, 0);
  } else {
    for (; a.s.naps < p.naps; ++a.s.naps) ws_pause(w, &a.g, 100, kLoop);
    __atomic_store_n(global<uint32_t>(w, p.flag), 1, __ATOMIC_RELEASE);
  }
}

// Waits for ever: all threads of all blocks but those of block `but`, which wait at a barrier if `mixed`.
KERNEL(for_ever) {
  struct P { uint64_t flag; uint32_t mixed, counting; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t seen, turns; };
  Activation<Registers, 2> a(w);
  if (p.mixed && w->warp_id) ws_barrier(w, &a.g, 0, 0, -1, w->live, 0, kBar0);
  while (!(a.s.seen = __atomic_load_n(global<uint32_t>(w, p.flag), __ATOMIC_ACQUIRE))) {
    if (p.counting) ++a.s.turns;
    a.go(0, 0);
  }
}

// The same with a barrier in the loop: while (!*flag) __syncthreads();
KERNEL(for_ever_together) {
  const uint64_t flag = params<uint64_t>(w);
  struct Registers { uint64_t seen; };
  Activation<Registers, 2> a(w);
  while (!(a.s.seen = __atomic_load_n(global<uint32_t>(w, flag) + 0, __ATOMIC_ACQUIRE))) {
    ws_barrier(w, &a.g, 0, 0, -1, w->live, 0, kBar0);
    a.go(0, 0);
  }
}

// Block 0 loops with a barrier until the last block has run.
KERNEL(wait_together) {
  const uint64_t flag = params<uint64_t>(w);
  if (block_in_grid(w) == 0) for_ever_together_entry(w);
  else if (block_in_grid(w) + 1 == w->nctaid[0]) __atomic_store_n(global<uint32_t>(w, flag), 1, __ATOMIC_RELEASE);
}

// A grid barrier as cooperative groups makes it.  out[block] = sum of what the others wrote before.
KERNEL(grid_sync) {
  struct P { uint64_t in, out; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t seen; };
  Activation<Registers, 2> a(w);
  const uint64_t workspace = ws_envreg(w, 1) << 32 | ws_envreg(w, 2);
  auto* in = global<uint32_t>(w, p.in);
  const uint64_t blocks = uint64_t(w->nctaid[0]) * w->nctaid[1] * w->nctaid[2];
  if (w->warp_id == 0) __atomic_store_n(in + block_in_grid(w), uint32_t(block_in_grid(w) + 1), __ATOMIC_RELAXED);
  ws_barrier(w, &a.g, 0, 0, -1, w->live, 0, kBar0);
  if (w->warp_id == 0) {
    auto* word = global<uint32_t>(w, workspace) + 1;
    const uint32_t add = block_in_grid(w) == 0 ? 0x80000000u - uint32_t(blocks - 1) : 1;
    const uint32_t old = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
    while (!(((a.s.seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) ^ old) & 0x80000000u)) a.go(0, 0);
  }
  ws_barrier(w, &a.g, 0, 0, -1, w->live, 0, kBar0);
  if (w->warp_id == 0) {
    uint32_t sum = 0;
    for (uint64_t b = 0; b < blocks; ++b) sum += __atomic_load_n(in + b, __ATOMIC_RELAXED);
    global<uint32_t>(w, p.out)[block_in_grid(w)] = sum;
  }
}

// A loop of `turns` that changes a register: much work, nobody waits.
KERNEL(busy) {
  struct P { uint64_t out, turns; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t x; };
  Activation<Registers, 2> a(w);
  for (uint64_t i = 0; i < p.turns; ++i) {
    a.s.x = a.s.x * 6364136223846793005u + i;
    a.rest(0);
    w->instructions += 2;
  }
  if (p.out) *(global<uint64_t>(w, p.out) + block_in_grid(w)) = a.s.x;
}

// ---- memory --------------------------------------------------------------------------------------------

struct Access {
  uint64_t address;             // of lane 0
  int64_t stride;
  uint32_t space, kind, bytes, mask, site, times;
  uint64_t out;
};

// Checks `times` accesses, then (for a read of global memory) copies what it read to out.
KERNEL(access) {
  const auto& p = params<Access>(w);
  uint64_t addr[32];
  EACH(~0u, i) addr[i] = p.address + uint64_t(p.stride * int64_t(i));
  for (uint32_t t = 0; t < p.times; ++t) ws_check(w, p.site, p.space, p.kind, p.bytes, addr, p.mask & w->live);
  if (p.out) *global<ws_range>(w, p.out) = w->cache[p.site];
}

// Reads with ws_read, adds 1 to every byte, writes with ws_write.
KERNEL(copy_and_add) {
  const auto& p = params<Access>(w);
  uint64_t addr[32], to[32];
  EACH(~0u, i) addr[i] = p.address + uint64_t(p.stride * int64_t(i)), to[i] = p.out + uint64_t(p.stride * int64_t(i));
  uint8_t buffer[32 * 64] = {};
  ws_read(w, kLoad, p.space, addr, buffer, p.bytes, w->live & p.mask);
  for (uint8_t& b : buffer) ++b;
  ws_write(w, kStore, WS_GENERIC, to, buffer, p.bytes, w->live & p.mask);
}

// Touches memory without any check.
KERNEL(wild) {
  const auto& p = params<Access>(w);
  *global<volatile uint32_t>(w, p.address) = 1;
}

// Writes to shared and local memory through generic addresses and reads it back into out.
KERNEL(windows) {
  struct P { uint64_t out; };
  uint64_t shared[32], local[32];
  uint32_t value[32], back[32];
  EACH(~0u, i) {
    shared[i] = WS_SHARED_WINDOW + 4 * (31 - i);
    local[i] = WS_LOCAL_WINDOW + 8;
    value[i] = i * i;
  }
  ws_write(w, kStore, WS_GENERIC, shared, value, 4, w->live);
  ws_read(w, kLoad, WS_GENERIC, shared, back, 4, w->live);
  ws_write(w, kStore, WS_GENERIC, local, back, 4, w->live);
  ws_read(w, kLoad, WS_LOCAL, [&] { EACH(~0u, i) local[i] = 8; return local; }(), back, 4, w->live);
  EACH(w->live, i) global<uint32_t>(w, params<P>(w).out)[i] = back[i] + reinterpret_cast<uint32_t*>(w->shared)[i];
}

struct Atomic {
  uint64_t address, b, c, out;
  uint32_t space, op, type, size, mask, stride, times;
};

// One atomic operation of every lane of every warp, `times` times.  b, c, out: one value a thread.
KERNEL(atomic) {
  const auto& p = params<Atomic>(w);
  alignas(16) uint8_t b[32 * 16], c[32 * 16], out[32 * 16] = {};
  uint64_t addr[32];
  const uint64_t first = thread_in_grid(w, 0) * p.size;
  EACH(w->live, i) addr[i] = p.address + uint64_t(p.stride) * i;
  std::memcpy(b, global<uint8_t>(w, p.b + first), 32 * p.size);
  if (p.c) std::memcpy(c, global<uint8_t>(w, p.c + first), 32 * p.size);
  if (p.space == WS_SHARED) std::memcpy(w->shared, global<uint8_t>(w, p.out), 512);
  for (uint32_t t = 0; t < p.times; ++t)
    ws_atomic(w, kStore, p.space, p.op, p.type, addr, b, p.c ? c : nullptr, p.out && p.space != WS_SHARED ? out : nullptr, p.mask & w->live);
  if (p.space == WS_SHARED) std::memcpy(global<uint8_t>(w, p.out), w->shared, 512);
  else if (p.out) std::memcpy(global<uint8_t>(w, p.out + first), out, 32 * p.size);
}

// mode 0: allocate size bytes a lane; 1: free; 2: allocate, fill, free in a loop
KERNEL(heap) {
  struct P { uint64_t pointers, size; uint32_t mode; };
  const auto& p = params<P>(w);
  auto* pointers = global<uint64_t>(w, p.pointers) + thread_in_grid(w, 0);
  uint64_t size[32], got[32];
  EACH(~0u, i) size[i] = p.size;
  if (p.mode == 0) ws_device_malloc(w, size, pointers, w->live);
  if (p.mode == 1) ws_device_free(w, kNowhere, pointers, w->live);
  for (uint32_t t = 0; p.mode == 2 && t < 50; ++t) {
    ws_device_malloc(w, size, got, w->live);
    EACH(w->live, i) {
      ws_check(w, kStore, WS_GLOBAL, WS_STORE, 4, got, 1u << i);
      std::memset(global<uint8_t>(w, got[i]), int(i), p.size);
    }
    EACH(w->live, i) for (uint64_t k = 0; k < p.size; ++k) pointers[i] += global<uint8_t>(w, got[i])[k] != i;
    ws_device_free(w, kNowhere, got, w->live);
  }
}

// A use after free of device memory through a cached range.
KERNEL(heap_use_after_free) {
  uint64_t size[32], got[32];
  EACH(~0u, i) size[i] = 256;
  ws_device_malloc(w, size, got, 1);
  ws_check(w, kLoad, WS_GLOBAL, WS_LOAD, 4, got, 1);
  const ws_range before = w->cache[kLoad];
  ws_device_free(w, kNowhere, got, 1);
  const ws_range after = w->cache[kLoad];
  global<uint64_t>(w, params<uint64_t>(w))[0] = before.limit;
  global<uint64_t>(w, params<uint64_t>(w))[1] = after.limit;
  ws_check(w, kLoad, WS_GLOBAL, WS_LOAD, 4, got, 1);
}

// ---- ends ----------------------------------------------------------------------------------------------

KERNEL(print) {
  struct P { uint64_t format, arguments, result; uint32_t stride, mask; };
  const auto& p = params<P>(w);
  uint64_t format[32], args[32];
  int32_t result[32] = {};
  EACH(~0u, i) format[i] = p.format, args[i] = p.arguments + p.stride * thread_in_grid(w, int(i));
  ws_vprintf(w, kNowhere, format, args, result, p.mask & w->live);
  if (p.result) EACH(p.mask & w->live, i) global<int32_t>(w, p.result)[thread_in_grid(w, int(i))] = result[i];
}

KERNEL(assertion) {
  struct P { uint64_t message, file, function; };
  const auto& p = params<P>(w);
  uint64_t message[32], file[32], function[32];
  uint32_t line[32];
  EACH(~0u, i) message[i] = p.message, file[i] = p.file, function[i] = p.function, line[i] = 42;
  if (w->warp_id == 1) ws_assertfail(w, kNowhere, message, file, line, function, 0x30);
}

KERNEL(trap) {
  if (block_in_grid(w) == params<uint32_t>(w)) ws_fail(w, kNowhere, 0x80000000, WS_E_TRAP, "trap instruction");
}

static int __attribute__((noinline)) deeper(ws_warp* w, volatile uint8_t* above) {
  volatile uint8_t frame[4096];
  frame[0] = above[0];
  return deeper(w, frame) + frame[1];
}
KERNEL(recursion) {
  volatile uint8_t top[1] = {0};
  w->instructions += uint64_t(deeper(w, top));
}

KERNEL(divide_by_zero) {
#if defined(__x86_64__)
  asm volatile("xor %%ecx, %%ecx\n xor %%edx, %%edx\n mov $1, %%eax\n div %%ecx" ::: "eax", "ecx", "edx");
#else
  __builtin_trap();
#endif
}

KERNEL(clocks) {
  auto* out = global<uint64_t>(w, params<uint64_t>(w));
  for (int i = 0; i < 8; ++i) out[i] = ws_clock(w);
  out[8] = ws_globaltimer(w);
}

static ws_kernel_info with(ws_kernel_info k, const char* name, void (*change)(ws_kernel_info&)) {
  k.name = name;
  change(k);
  return k;
}
EXPORT const ws_kernel_info info_bounded = with(info_nothing, "bounded", [](ws_kernel_info& k) {
  k.static_shared = 1000;
  k.maxntid[0] = 128, k.maxntid[1] = k.maxntid[2] = 1;
});
EXPORT const ws_kernel_info info_exact = with(info_nothing, "exact", [](ws_kernel_info& k) { k.reqntid[0] = 64, k.reqntid[1] = 2, k.reqntid[2] = 1; });
EXPORT const ws_kernel_info info_old = with(info_nothing, "old", [](ws_kernel_info& k) { k.abi = 0; });

// ---- random control flow -------------------------------------------------------------------------------

// Lanes wander through a random graph.  Every lane's way is decided by its own random numbers, so it does not depend
// on the others: out[2 * thread] is a hash of its way, and out[2 * thread + 1] of warp 0's lane 0 counts breaches of
// the rules that ptx/divergence.py relies on.
struct MazeNode {
  uint32_t yes, no;             // next ranks
  uint32_t kind;                // 0: plain, 1: polling (back-edges between such nodes yield), 2: a barrier for lanes that go to `no`
  uint32_t pad;
};

KERNEL(maze) {
  struct P { uint64_t nodes, out; uint32_t ranks, steps, seed; };
  const auto& p = params<P>(w);
  struct Registers { uint64_t x[32], way[32]; uint32_t left[32]; };
  constexpr int kRanks = 64;
  Activation<Registers, kRanks> a(w);
  a.g.ranks = p.ranks;
  const auto* nodes = global<const MazeNode>(w, p.nodes);
  EACH(w->live, i) {
    a.s.x[i] = (thread_in_grid(w, int(i)) + 1) * 0x9e3779b97f4a7c15ull ^ p.seed;
    a.s.way[i] = 0;
    a.s.left[i] = p.steps;
  }
  uint64_t breaches = 0;
  uint32_t rank = 0;
  auto jump = [&](uint32_t from, uint32_t to) {
    if (to <= from && --w->budget == 0) {
      if (nodes[from].kind == 1 && nodes[to].kind == 1) return ws_yield(w, &a.g, to, a.g.mask, kLoop);
      ws_rest(w, &a.g, to, a.g.mask, kLoop);
    }
    return to < a.g.frontier ? to : ws_dispatch(w, &a.g, to, a.g.mask);
  };
  while (rank != WS_DONE) {
    const uint32_t mask = a.g.mask;
    if (w->budget > 2) w->budget = 2;  // to see more of the scheduler
    // Nobody waits here or, unless in a polling loop, before.
    if (!mask || (mask & ~w->live) || a.wait[rank]) ++breaches;
    for (uint32_t r = 0; r < rank; ++r) breaches += a.wait[r] && nodes[r].kind != 1;
    const MazeNode& n = nodes[rank];
    uint32_t yes = 0, out = 0;
    EACH(mask, i) {
      a.s.way[i] = (a.s.way[i] ^ rank) * 0x100000001b3ull;
      a.s.x[i] = a.s.x[i] * 6364136223846793005ull + 1442695040888963407ull;
      yes |= uint32_t(a.s.x[i] >> 60 > 7) << i;
      out |= uint32_t(--a.s.left[i] == 0) << i;
    }
    if (out) {
      ws_exit(w, out);
      a.g.mask &= ~out;
      yes &= ~out;
      if (!a.g.mask) {
        rank = ws_next(w, &a.g);
        continue;
      }
    }
    const uint32_t no = a.g.mask & ~yes;
    if (n.kind == 2 && !yes) rank = ws_barrier_parted(w, &a.g, 0, -1, a.g.mask, n.no, kBar0);
    else if (!no || n.yes == n.no) rank = jump(rank, n.yes);
    else if (!yes) rank = jump(rank, n.no);
    else rank = ws_diverge(w, &a.g, n.yes, yes, n.no, no);
  }
  const uint64_t first = thread_in_grid(w, 0);
  for (uint32_t i = 0; i < 32; ++i) {
    if (thread_in_block(w, 0) + i >= uint64_t(w->ntid[0]) * w->ntid[1] * w->ntid[2]) break;
    global<uint64_t>(w, p.out)[2 * (first + i)] = a.s.way[i];
    global<uint64_t>(w, p.out)[2 * (first + i) + 1] = breaches;
  }
}
