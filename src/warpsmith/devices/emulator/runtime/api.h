// What a host (the Python package through ctypes, or our CUDA runtime library) calls.
//
// One emulated device a process.  All functions are thread-safe; launches run one after the other.
// They return 0 or a WS_E_* code; ws_last_message() then has one sentence.
#pragma once
#include "abi.h"

// The chip limits that the runtime enforces (from chips/*.toml).
struct ws_chip {
  uint32_t sm_count, max_threads_per_block, max_warps_per_sm, max_blocks_per_sm;
  uint32_t registers_per_sm, shared_per_sm, shared_per_block, shared_per_block_optin;
  uint64_t global_memory;       // bytes that cudaMalloc may hand out
  uint32_t max_grid[3], max_block[3];
};
struct ws_options {
  uint32_t threads;             // worker threads, 0: all cores that this process may use
  uint32_t check;               // 1: every access against its allocation; 0: page protection only
  uint32_t order;               // blocks start 0: ascending, 1: descending, 2: random
  uint32_t seed;
  uint32_t poison;              // fill fresh memory with this byte
  uint32_t patience_ms;         // a launch in which nothing changes for so long is a deadlock; 0: 500
};
struct ws_launch_config {
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared;
  uint32_t cooperative;
  uint32_t registers;           // a thread, for the residency sum; 0: unknown
  uint32_t pad;
};
// The first thing that went wrong in a launch.
struct ws_error {
  uint32_t code;                // WS_E_*, 0: none
  uint32_t site;                // index into the kernel's sites, ~0u: none
  uint32_t block[3], thread[3]; // of the first lane concerned
  uint32_t lanes;               // mask of the lanes concerned in its warp
  uint32_t space, kind, bytes;  // for memory errors
  uint64_t address;
  uint64_t near_base, near_size;// the nearest allocation, size 0: none
  char message[2048];           // whole, for people: what, where, likely why
};
struct ws_launch_result {
  ws_error error;
  uint64_t blocks, threads, warps;
  uint64_t instructions;        // warp instructions
  uint64_t nanoseconds;         // wall time of the launch
  uint32_t worker_threads;
};

WS_API int ws_init(const ws_chip*, const ws_options*);     // may be called again to change chip or options between launches
WS_API const char* ws_last_message();
WS_API uint64_t ws_malloc(uint64_t bytes, const char* label); // 0: out of memory.  256-byte aligned, guarded, poisoned
// Memory that host code can use as well, at the same address.  Freed with ws_free.
WS_API uint64_t ws_malloc_managed(uint64_t bytes, const char* label);
// Lets kernels use host memory at its own address, until it is unregistered.
WS_API int ws_register_host(void* host, uint64_t bytes);
WS_API int ws_unregister_host(void* host);
WS_API int ws_free(uint64_t address);                      // WS_E_MEMORY: not the start of a live allocation
WS_API int ws_copy_in(uint64_t to, const void* from, uint64_t bytes);
WS_API int ws_copy_out(void* to, uint64_t from, uint64_t bytes);
WS_API int ws_copy(uint64_t to, uint64_t from, uint64_t bytes);
WS_API int ws_fill(uint64_t to, uint8_t value, uint64_t bytes);
// What is at an address, for a message: "it lies 4 bytes into the 400-byte allocation ..., which has been freed".
WS_API const char* ws_describe(uint64_t address);
// 1 and the allocation when the address lies in a live one.
WS_API int ws_find(uint64_t address, uint64_t* base, uint64_t* size);
WS_API void ws_memory(uint64_t* in_use, uint64_t* allocations, uint64_t* peak);
WS_API uint64_t ws_available();                            // bytes that ws_malloc can hand out now (chip and host)
WS_API int ws_set_readonly(uint64_t address, uint32_t on); // kernels may not write this allocation (__constant__)
WS_API int ws_set_heap_limit(uint64_t bytes);              // device malloc; 8 MB until set, fixed by its first use
WS_API uint64_t ws_heap_limit();
// vars: device addresses in the order of info->vars.  Runs to the end (or to the first error).
WS_API int ws_launch(const ws_kernel_info*, const uint64_t* vars, const ws_launch_config*, const void* params,
                     ws_launch_result*);
// Most blocks of this kind that one SM can hold at once (0: does not fit).
WS_API uint32_t ws_resident_blocks(const ws_kernel_info*, const ws_launch_config*);
// What a texture or surface object stands for; elements have `channels` channels of `bytes` bytes each.
struct ws_texture {
  uint64_t address;             // of the first element
  uint64_t pitch, plane;        // bytes from row to row, from slice (or layer) to slice
  uint32_t width, height, depth;// in elements; at least 1
  uint32_t dimensions;          // 1 to 3, layers not counted
  uint32_t layers;              // 0: not layered (layers are the planes)
  uint32_t linear;              // plain memory: only whole coordinates, and 0 outside
  uint32_t channels, bytes;
  uint32_t kind;                // 0 signed, 1 unsigned, 2 floating-point
  uint32_t address_mode[3];     // WS_WRAP...
  uint32_t filter;              // 1: linear interpolation
  uint32_t normalized_result;   // integers become fractions
  uint32_t normalized_coordinates;
  uint32_t writable;            // a surface
  float border[4];
};
enum { WS_WRAP = 0, WS_CLAMP = 1, WS_MIRROR = 2, WS_BORDER = 3 };
WS_API uint64_t ws_texture_create(const ws_texture*);      // the object's handle; 0: there are too many
WS_API int ws_texture_destroy(uint64_t handle);            // WS_E_MEMORY: there is none
WS_API void ws_interrupt();                                // ends the running launch with WS_E_INTERRUPT
// Where printf of kernels goes; default stdout.  Called with whole lines or what a flush leaves.
WS_API void ws_set_output(void (*write)(const char* bytes, uint64_t size));
// 1: host code that dereferences a device address ends the process with one clear explanation on stderr.
WS_API void ws_explain_host_faults(int on);
// "name offset" a line for every field of the structures in abi.h, "name.size size" for the structures.
WS_API const char* ws_abi_layout();
