// The contract between compiled kernels (made by lowering/) and the runtime (this folder).
//
// A kernel is `void f(ws_warp*)`, compiled once for 32 lanes; one call runs one warp from start to
// end.  It runs on a stack of its own (fiber.cpp), so every function below may suspend the warp and
// come back later.  abi.py mirrors the layout of ws_warp and ws_groups; ws_abi_layout() lets a test
// compare the two.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define WS_ABI_VERSION 1
#define WS_LANES 32
#define WS_API extern "C" __attribute__((visibility("default")))

struct ws_block;   // scheduler's own

// ---- what compiled code reads and writes directly -------------------------------------------------
struct ws_warp {
  uint32_t live;            // lanes started and not exited
  uint32_t budget;          // back-edges left before compiled code calls ws_yield
  uint8_t* params;          // kernel parameters (host memory)
  uint8_t* shared;          // this block's shared memory (host memory)
  uint32_t shared_size;     // static + dynamic bytes
  uint32_t warp_id;         // %warpid
  uint8_t* local;           // local memory of lane 0; lane i is at local + i * local_size
  uint32_t local_size;      // bytes a lane
  uint32_t in_flight;       // check mode: asynchronous copies touch shared memory, see ws_in_flight
  const uint64_t* vars;     // device addresses of the module variables that this kernel names
  int64_t delta;            // host address = device address + delta (global, const)
  uint64_t instructions;    // warp instructions executed so far by this warp (PTX level)
  struct ws_range* cache;   // one entry a memory site: where its last access was found to be good
  uint32_t tid[3][WS_LANES];
  uint32_t ntid[3];
  uint32_t ctaid[3];
  uint32_t nctaid[3];
  uint32_t dynamic_shared;  // %dynamic_smem_size
  uint32_t smid, nsmid;
  uint64_t gridid;
  struct ws_groups* top;    // innermost activation; null when the entry is called.  Prologue: g->outer = w->top,
                            // w->top = g; epilogue: w->top = g->outer
  ws_block* block;          // runtime only, from here on
};

// An access of n bytes at address a was checked when a - base < limit (limit = size - n + 1).
struct ws_range { uint64_t base, limit; };

// Groups of lanes of one activation of a function that wait to run at some basic block.
// A block's rank is its place in a reverse post-order in which loops are contiguous; the group at the
// smallest rank runs first ("thread frontiers", Diamos et al., MICRO 2011), so lanes meet again as
// early as the control flow allows.  Compiled code starts with frontier = ~0, the sizes and pointers set, wait[] and
// everything else zero (park[] and mask need no value).
struct ws_groups {
  uint32_t frontier;        // smallest rank of a waiting group, ~0u if none: compiled code may jump
                            // straight to rank t only while t < frontier
  uint32_t waiting;         // number of groups waiting or parked
  uint32_t mask;            // out: the mask with which to continue at the returned rank
  uint32_t ranks;           // number of ranks
  uint8_t* state;           // register file of the activation (deadlock detection compares it)
  uint32_t state_size;
  uint32_t parked;          // number of entries of park[] in use
  uint32_t passed;          // runtime only: waiting lanes that spun in vain, after whom others come first
  uint32_t streak;          // runtime only: yields in a row without giving way.  Compiled code zeroes both.
  struct { uint32_t rank, mask, kind, id, count, site; uint64_t ticket; } park[WS_LANES];
  uint32_t* wait;           // [ranks] masks of the groups that wait, by rank
  ws_groups* outer;         // activation that called this one: its lanes wait for our return
};

// ---- what a compiled object says of itself ---------------------------------------------------------
struct ws_site {            // an instruction that can fail or wait
  uint32_t ptx_line;
  uint32_t line;            // source line, 0 if unknown
  const char* file;         // source file, null if unknown
  const char* text;         // the instruction as written: "ld.global.f32"
  const char* function;     // PTX name of the function that it stands in
};
struct ws_kernel_info {
  uint32_t abi;             // WS_ABI_VERSION
  uint32_t param_bytes;
  uint32_t static_shared;
  uint32_t local_bytes;     // a lane; deep or recursive calls: the most that a lane may use
  uint32_t stack_bytes;     // native stack that a warp may need
  uint32_t site_count;
  uint32_t var_count;
  uint32_t uses_grid_sync;
  uint32_t reqntid[3], maxntid[3];   // 0: not given
  const char* name;
  void (*entry)(ws_warp*);
  const ws_site* sites;
  const char* const* vars;  // [var_count] names, in the order of ws_warp::vars
  uint32_t function_count;  // functions whose address is taken; function i has device address
  uint32_t pad;             //   WS_FUNCTION_BASE + 16 * i
  const char* const* functions;
};
#define WS_FUNCTION_BASE 0x7e0000000000ull
// Windows of generic addressing: an address in [base, base + size) is in shared / local memory.
#define WS_SHARED_WINDOW 0x7f0000000000ull
#define WS_LOCAL_WINDOW  0x7f0100000000ull
#define WS_PARAM_WINDOW  0x7f0200000000ull  // kernel parameters; ws_warp::params has room for 32 KiB at least
#define WS_WINDOW_SIZE   0x100000000ull

// State spaces, as numbers in the calls below.
enum { WS_GENERIC = 0, WS_GLOBAL = 1, WS_SHARED = 2, WS_LOCAL = 3, WS_CONST = 4, WS_PARAM = 5 };
// Why an access is made (for the report).
enum { WS_LOAD = 0, WS_STORE = 1, WS_ATOMIC = 2 };

// ---- what compiled code calls: control flow --------------------------------------------------------
// Every function returns a rank to continue at, with g->mask, or WS_DONE when no lane is left.
#define WS_DONE 0xffffffffu
// Lanes of `mask` want to run at `rank`, and some other group may come first.
WS_API uint32_t ws_dispatch(ws_warp*, ws_groups*, uint32_t rank, uint32_t mask);
// The lanes part: `mask_a` to rank `a`, `mask_b` to rank `b` (both non-zero).
WS_API uint32_t ws_diverge(ws_warp*, ws_groups*, uint32_t a, uint32_t mask_a, uint32_t b, uint32_t mask_b);
// The lanes running now have left this activation (returned or exited): who is next?
WS_API uint32_t ws_next(ws_warp*, ws_groups*);
// A back-edge to `rank` with the budget used up: let other groups, warps and blocks run.
// site: any instruction of the loop (the branch itself is best), for the report of a deadlock.
WS_API uint32_t ws_yield(ws_warp*, ws_groups*, uint32_t rank, uint32_t mask, uint32_t site);
// The same in a loop that waits for nobody: other warps and blocks may run, this group goes on.  Groups that wait
// behind such a loop must not pass it: the analyses count on it (ptx/divergence.py, rule 2).
// site | 1 << 31: the loop reads memory or a clock, so that equal registers do not mean that it never ends.
WS_API void ws_rest(ws_warp*, ws_groups*, uint32_t rank, uint32_t mask, uint32_t site);
// nanosleep and failed try_wait: give way without ending the group's turn at this place.
WS_API void ws_pause(ws_warp*, ws_groups*, uint32_t nanoseconds, uint32_t site);

// bar/barrier.  kind: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or.  count: threads, or -1 for all.
// ws_barrier: no other group waits in this activation; comes back when the barrier is complete.
// For red, `value` has the lanes' predicates and the result is returned (0/1 or the count).
WS_API uint32_t ws_barrier(ws_warp*, ws_groups*, uint32_t kind, uint32_t id, int32_t count, uint32_t mask, uint32_t value, uint32_t site);
// Other groups wait: park this one until the barrier completes, continue at `next` then.  sync only
// (arrive never waits; red with parted lanes is reported).
WS_API uint32_t ws_barrier_parted(ws_warp*, ws_groups*, uint32_t id, int32_t count, uint32_t mask, uint32_t next, uint32_t site);
// A .sync instruction (shfl, vote, match, redux, elect) at the start of the block of `rank` names live
// lanes that are not in `mask`: wait for them there, then continue at `rank` with all of them.
WS_API uint32_t ws_rendezvous(ws_warp*, ws_groups*, uint32_t members, uint32_t mask, uint32_t rank, uint32_t site);
// bar.warp.sync names live lanes that are not in `mask`: wait until they have come to any bar.warp.sync with the
// same members (not necessarily this one), then continue at `next`, the rank of what follows.
WS_API uint32_t ws_syncwarp(ws_warp*, ws_groups*, uint32_t members, uint32_t mask, uint32_t next, uint32_t site);
// Lanes leave the kernel (ret of the entry, exit).
WS_API void ws_exit(ws_warp*, uint32_t mask);

// ---- what compiled code calls: memory --------------------------------------------------------------
// Slow paths: called when an address is not in the site's cached range.  Never return if the access
// is bad (the launch ends with a report).  addr: [32] device addresses (or offsets in the space).
WS_API void ws_check(ws_warp*, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, const uint64_t* addr, uint32_t mask);
// Any other failure, with one sentence for the user.  lane mask: those concerned.
WS_API void ws_fail(ws_warp*, uint32_t site, uint32_t mask, uint32_t code, const char* message);
enum { WS_E_TRAP = 1, WS_E_ASSERT, WS_E_OOB, WS_E_MISALIGNED, WS_E_NULL, WS_E_DEADLOCK, WS_E_BARRIER,
       WS_E_STACK, WS_E_CALL, WS_E_UNSUPPORTED, WS_E_INTERRUPT, WS_E_LAUNCH, WS_E_MEMORY, WS_E_SEGV,
       WS_E_READONLY, WS_E_SYNC, WS_E_ASYNC };

// Atomics, one lane after the other in lane order.  addr as in ws_check.  out may be null (red).
// b, c, out: 32 values of the type's size (2, 4, 8 or 16 bytes).  cas: b is compared, c is stored.
// b16...b128 do for exch, cas, and, or, xor of any type of that size.
enum { WS_OP_ADD, WS_OP_MIN, WS_OP_MAX, WS_OP_INC, WS_OP_DEC, WS_OP_AND, WS_OP_OR, WS_OP_XOR, WS_OP_EXCH, WS_OP_CAS, WS_OPS };
enum { WS_T_B16, WS_T_B32, WS_T_B64, WS_T_B128, WS_T_U32, WS_T_S32, WS_T_U64, WS_T_S64, WS_T_F16, WS_T_BF16,
       WS_T_F16X2, WS_T_BF16X2, WS_T_F32, WS_T_F64, WS_TYPES };
WS_API void ws_atomic(ws_warp*, uint32_t site, uint32_t space, uint32_t op, uint32_t type, const uint64_t* addr,
                      const void* b, const void* c, void* out, uint32_t mask);

// ---- what compiled code calls: library functions ----------------------------------------------------
WS_API void ws_vprintf(ws_warp*, uint32_t site, const uint64_t* format, const uint64_t* args, int32_t* result, uint32_t mask);
WS_API void ws_assertfail(ws_warp*, uint32_t site, const uint64_t* message, const uint64_t* file, const uint32_t* line,
                          const uint64_t* function, uint32_t mask);
WS_API void ws_device_malloc(ws_warp*, const uint64_t* size, uint64_t* result, uint32_t mask);
WS_API void ws_device_free(ws_warp*, uint32_t site, const uint64_t* pointer, uint32_t mask);
// Copies the bytes that lanes address (any space) to or from [32][bytes] host memory.
WS_API void ws_read(ws_warp*, uint32_t site, uint32_t space, const uint64_t* addr, void* out, uint32_t bytes, uint32_t mask);
WS_API void ws_write(ws_warp*, uint32_t site, uint32_t space, const uint64_t* addr, const void* in, uint32_t bytes, uint32_t mask);
// Textures and surfaces.  handle: [32] objects; x, y, z: [32] coordinates, null if there is none (bits of float, or
// s32 with WS_TEX_INTEGER); layer: null if not layered.  out: four times [32] results of 32 bits.
enum { WS_TEX_INTEGER = 1, WS_TEX_GATHER = 2 /* | channel << 4 */ };
WS_API void ws_texture_fetch(ws_warp*, uint32_t site, uint32_t flags, uint32_t dimensions, const uint64_t* handle, const uint32_t* x,
                             const uint32_t* y, const uint32_t* z, const uint32_t* layer, uint32_t* out, uint32_t mask);
// x is in bytes.  data: `items` times [32] values of `width` bytes, 128 bytes or 32 * width apart (the greater), read or
// written.  outside: 0 is an error, 1 clamps, 2 reads zero and writes nothing.
WS_API void ws_surface_access(ws_warp*, uint32_t site, uint32_t store, uint32_t outside, uint32_t dimensions, uint32_t items,
                              uint32_t width, const uint64_t* handle, const int32_t* x, const int32_t* y, const int32_t* z,
                              const int32_t* layer, void* data, uint32_t mask);
WS_API uint64_t ws_clock(ws_warp*);          // %clock64: monotonic, a lower bound of progress
WS_API uint64_t ws_globaltimer(ws_warp*);    // ns
// cooperative_groups grid sync reads %envreg1/2 as the address of a barrier word pair in global memory
WS_API uint64_t ws_envreg(ws_warp*, uint32_t index);

// ---- what compiled code calls: matrices of a warp (PTX ISA 9.7.14) --------------------------------------
// A fragment is an array [register][32 lanes] of 32-bit words (f64: of 64-bit ones), 64-byte aligned.
enum { WS_M_F16, WS_M_BF16, WS_M_TF32, WS_M_F32, WS_M_F64, WS_M_E4M3, WS_M_E5M2, WS_M_S8, WS_M_U8, WS_M_S4, WS_M_U4, WS_M_B1, WS_M_S32 };
enum { WS_MMA_SATURATE = 1, WS_MMA_AND = 2, WS_MMA_SPARSE = 4, WS_MMA_QUADS = 8, WS_MMA_A_COLUMNS = 16, WS_MMA_B_ROWS = 32,
       WS_MMA_EXACT = 64 };    // sums as the hardware forms them
struct ws_mma_form {
  uint8_t a, b, c, d;       // element types
  uint8_t m, flags;         // rows: 8 or 16; columns are 8
  uint16_t k;
  uint8_t selector;         // of a sparse A
  uint8_t pad[7];
};
// d may be c.  metadata: [32], of a sparse A.
WS_API void ws_mma(const ws_mma_form*, const void* a, const void* b, const void* c, void* d, const uint32_t* metadata);
// The same in three steps, for operands of f16, bf16 or tf32 that take part in several products: left and right are areas
// of WS_LEFT_BYTES and WS_RIGHT_BYTES that start with the registers of A and B.
#define WS_LEFT_BYTES 2176
#define WS_RIGHT_BYTES 1152
WS_API void ws_mma_left(const ws_mma_form*, void* left);
WS_API void ws_mma_right(const ws_mma_form*, void* right);
WS_API void ws_mma_prepared(const ws_mma_form*, const void* left, const void* right, const void* c, void* d);
// These instructions need all lanes of the warp: the launch ends with a report unless mask is empty.
WS_API void ws_whole_warp(ws_warp*, uint32_t site, uint32_t mask);
// Generic addresses that must lie in shared memory -> offsets in it.
WS_API void ws_shared_offsets(ws_warp*, uint32_t site, const uint64_t* addr, uint32_t* offset, uint32_t mask);
// ldmatrix, stmatrix: `count` 8x8 matrices of 16-bit elements; addr: offsets in shared memory of 8 * count rows.
WS_API void ws_ldmatrix(ws_warp*, uint32_t site, uint32_t count, uint32_t transposed, const uint32_t* addr, uint32_t* out);
WS_API void ws_stmatrix(ws_warp*, uint32_t site, uint32_t count, uint32_t transposed, const uint32_t* addr, const uint32_t* in);
WS_API void ws_movmatrix(const uint32_t* in, uint32_t* out);
// wmma.load and wmma.store.  Register r of a lane holds `per` elements of `bits` bits; the first one is in this row and
// column of the matrix, the next ones in the next columns (along = 1) or rows.
struct ws_place { uint16_t row, column; };
struct ws_tile {
  uint32_t registers, bits, per, along;
  const ws_place* place;    // [registers][32]
};
// stride: elements from a row (of a matrix stored by rows; else from a column) to the next.
WS_API void ws_tile_load(ws_warp*, uint32_t site, uint32_t space, const ws_tile*, uint64_t addr, uint32_t stride, uint32_t by_rows, void* out);
WS_API void ws_tile_store(ws_warp*, uint32_t site, uint32_t space, const ws_tile*, uint64_t addr, uint32_t stride, uint32_t by_rows, const void* in);

// ---- what compiled code calls: asynchronous copies and mbarriers (PTX ISA 9.7.9.25, 9.7.13.15) ----------
// Offsets in shared memory, [32] of each; `valid`: bytes of the source to read, null: all.  mask: lanes that execute it.
WS_API void ws_cp_async(ws_warp*, uint32_t site, uint32_t bytes, const uint32_t* to, const uint64_t* from, const uint32_t* valid, uint32_t mask);
WS_API void ws_cp_async_commit(ws_warp*, uint32_t mask);
// allowed: groups that may still be under way, ~0: wait for all that was asked for, committed or not.
WS_API void ws_cp_async_wait(ws_warp*, uint32_t allowed, uint32_t mask);
// counted: the arrivals are among those that the mbarrier was initialised for (.noinc).
WS_API void ws_cp_async_arrive(ws_warp*, uint32_t site, const uint32_t* barrier, uint32_t counted, uint32_t mask);
WS_API void ws_bulk_load(ws_warp*, uint32_t site, const uint32_t* to, const uint64_t* from, const uint32_t* bytes, const uint32_t* barrier, uint32_t mask);
WS_API void ws_bulk_store(ws_warp*, uint32_t site, const uint64_t* to, const uint32_t* from, const uint32_t* bytes, uint32_t mask);
WS_API void ws_bulk_commit(ws_warp*, uint32_t mask);
WS_API void ws_bulk_wait(ws_warp*, uint32_t allowed, uint32_t read, uint32_t mask);
// An access to shared memory while ws_warp::in_flight is set.
WS_API void ws_in_flight(ws_warp*, uint32_t site, uint32_t kind, uint32_t bytes, const uint32_t* offset, uint32_t mask);

WS_API void ws_mbarrier_init(ws_warp*, uint32_t site, const uint32_t* at, const uint32_t* count, uint32_t mask);
WS_API void ws_mbarrier_inval(ws_warp*, uint32_t site, const uint32_t* at, uint32_t mask);
// count: null: 1 each; bytes: to expect, null: none; state: out, may be null.
enum { WS_ARRIVE_DROP = 1, WS_ARRIVE_STAY = 2 };  // .arrive_drop, .noComplete
WS_API void ws_mbarrier_arrive(ws_warp*, uint32_t site, uint32_t how, const uint32_t* at, const uint32_t* count, const uint32_t* bytes,
                               uint64_t* state, uint32_t mask);
WS_API void ws_mbarrier_raise(ws_warp*, uint32_t site, const uint32_t* at, uint32_t mask);
WS_API void ws_mbarrier_bytes(ws_warp*, uint32_t site, const uint32_t* at, const uint32_t* bytes, uint32_t complete, uint32_t mask);
// The lanes whose phase is complete (state or parity: which one).  If some are not, others get a turn first.
WS_API uint32_t ws_mbarrier_wait(ws_warp*, ws_groups*, uint32_t site, const uint32_t* at, const uint64_t* state, const uint32_t* parity, uint32_t mask);
WS_API void ws_mbarrier_pending(const uint64_t* state, uint32_t* count);
