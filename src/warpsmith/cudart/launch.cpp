// Launching kernels in all the ways that the API has, and what it tells about kernels.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "runtime.h"

namespace cudart {
namespace {

struct Configuration { dim3 grid, block; size_t shared; cudaStream_t stream; };
thread_local std::vector<Configuration> pushed;

uint64_t volume(const uint32_t d[3]) { return uint64_t{d[0]} * d[1] * d[2]; }
void set(uint32_t to[3], const dim3& from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; }
std::string show(const uint32_t d[3]) { return format("(%u, %u, %u)", d[0], d[1], d[2]); }

// "add<<<(4, 1, 1), (2048, 1, 1)>>> was refused: ", the start of a sentence about a launch that is refused.
std::string launch_text(const Kernel& k, const ws_launch_config& c) {
  return k.pretty + "<<<" + show(c.grid) + ", " + show(c.block) + ">>> was refused: ";
}

cudaError_t refuse(const Kernel& k, const ws_launch_config& c, cudaError_t e, const std::string& why) {
  complain("launch", launch_text(k, c) + why);
  return e;
}

cudaError_t check_shape(const State& s, const Kernel& k, const ws_launch_config& c) {
  if (volume(c.block) > s.chip.max_threads_per_block)
    return refuse(k, c, cudaErrorInvalidValue, format("%llu threads a block, the chip allows %u",
                  static_cast<unsigned long long>(volume(c.block)), s.chip.max_threads_per_block));
  for (int i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (c.grid[i] == 0 || c.block[i] == 0)
      return refuse(k, c, cudaErrorInvalidValue, format("the %s is empty in %c", c.grid[i] ? "block" : "grid", axis));
    if (c.block[i] > s.chip.max_block[i])
      return refuse(k, c, cudaErrorInvalidValue, format("a block may have %u threads in %c", s.chip.max_block[i], axis));
    if (c.grid[i] > s.chip.max_grid[i])
      return refuse(k, c, cudaErrorInvalidValue, format("a grid may have %u blocks in %c", s.chip.max_grid[i], axis));
  }
  return cudaSuccess;
}

uint32_t dynamic_limit(const State& s, const Kernel& k) {
  if (k.dynamic_limit >= 0) return k.dynamic_limit;
  return s.chip.shared_per_block - std::min(k.info->static_shared, s.chip.shared_per_block);
}

cudaError_t check_kernel(const State& s, const Kernel& k, const ws_launch_config& c) {
  const ws_kernel_info& i = *k.info;
  unsigned threads = volume(c.block);
  if (i.reqntid[0] && !std::equal(i.reqntid, i.reqntid + 3, c.block))
    return refuse(k, c, cudaErrorInvalidValue, "the kernel requires blocks of exactly " + show(i.reqntid));
  if (i.maxntid[0] && threads > volume(i.maxntid))
    return refuse(k, c, cudaErrorInvalidValue, format("%u threads a block, its __launch_bounds__ allow %llu", threads,
                  static_cast<unsigned long long>(volume(i.maxntid))));
  if (c.dynamic_shared > dynamic_limit(s, k)) {
    bool static_too_much = i.static_shared > s.chip.shared_per_block;
    return refuse(k, c, cudaErrorInvalidValue, static_too_much
      ? format("%u bytes of static shared memory, a block may have %u", i.static_shared, s.chip.shared_per_block)
      : format("%u bytes of dynamic shared memory, it may have %u (%u static)%s", c.dynamic_shared, dynamic_limit(s, k),
               i.static_shared, k.dynamic_limit < 0 && c.dynamic_shared + i.static_shared <= s.chip.shared_per_block_optin
                 ? "; cudaFuncSetAttribute with cudaFuncAttributeMaxDynamicSharedMemorySize allows more" : ""));
  }
  if (k.registers > 0 && uint64_t(k.registers) * threads > s.chip.registers_per_sm)
    return refuse(k, c, cudaErrorLaunchOutOfResources, format("%d registers a thread times %u threads is more than the %u of an SM",
                  k.registers, threads, s.chip.registers_per_sm));
  return cudaSuccess;
}

cudaError_t check_cooperative(State& s, Kernel& k, ws_launch_config& c) {
  c.registers = registers(s, k);
  uint64_t resident = ws_resident_blocks(k.info, &c), room = resident * s.chip.sm_count, blocks = volume(c.grid);
  if (blocks <= room) return cudaSuccess;
  return refuse(k, c, cudaErrorCooperativeLaunchTooLarge,
                format("a cooperative launch needs all its %llu blocks on the chip at once, and %u SMs times %llu blocks are %llu",
                       static_cast<unsigned long long>(blocks), s.chip.sm_count, static_cast<unsigned long long>(resident),
                       static_cast<unsigned long long>(room)));
}

cudaError_t error_of(const ws_error& e) {
  switch (e.code) {
    case WS_E_ASSERT: return cudaErrorAssert;
    case WS_E_MISALIGNED: return cudaErrorMisalignedAddress;
    case WS_E_CALL: return cudaErrorInvalidPc;
    case WS_E_BARRIER:
    case WS_E_UNSUPPORTED: return cudaErrorIllegalInstruction;
    case WS_E_DEADLOCK:
    case WS_E_INTERRUPT: return cudaErrorLaunchTimeout;
    case WS_E_OOB:  // as measured on an H200, where an address that no shared memory can have is another mistake
      return e.space == WS_SHARED && e.address >= 1u << 24 ? cudaErrorIllegalInstruction : cudaErrorIllegalAddress;
    case WS_E_NULL:
    case WS_E_STACK:
    case WS_E_SEGV:
    case WS_E_READONLY: return cudaErrorIllegalAddress;
    default: return cudaErrorLaunchFailure;
  }
}

std::vector<uint8_t> pack(const Kernel& k, void** args) {
  std::vector<uint8_t> bytes(std::max<size_t>(k.parameter_bytes, 16));
  for (size_t i = 0; i < k.parameters.size(); ++i)
    memcpy(&bytes[k.parameters[i].offset], args[i], k.parameters[i].size);
  return bytes;
}

// Ctrl-C during a launch was caught there; now it means what it meant to the program.
cudaError_t interrupted(State& s, const Kernel& k, const ws_launch_result& r) {
  s.fault = cudaErrorLaunchTimeout;
  flush_output();
  fflush(stdout);
  fprintf(stderr, "\nwarpsmith: interrupted while %s ran, after %.1f s\n", k.pretty.c_str(), double(r.nanoseconds) / 1e9);
  update_summary(s, true);
  Unlocked others(s.mutex);
  raise(SIGINT);
  return cudaSuccess;
}

cudaError_t launch(State& s, Kernel& k, const void* function, const Configuration& from, void** args, bool cooperative) {
  if (!known(s, from.stream)) return cudaErrorInvalidResourceHandle;
  KernelWork work;
  work.function = function;
  TRY(prepare_launch(s, k, from.grid, from.block, from.shared, args, cooperative, work));
  return enqueue_kernel(s, from.stream, std::move(work));
}

cudaError_t launch_checked(Kernel* kernel, const void* function, const Configuration& c, void** args, bool cooperative) {
  if (in_callback) return cudaErrorNotPermitted;
  if (cudaError_t e = initialise()) return answer(e);
  State& s = state();
  Lock lock(s.mutex);
  if (s.dead) return answer(cudaErrorDevicesUnavailable);
  if (s.fault) return answer(s.fault);
  cudaError_t error = cudaSuccess;
  if (!kernel) kernel = find_kernel(s, function, error);
  return answer(kernel ? launch(s, *kernel, function, c, args, cooperative) : error);
}

bool known_attribute(cudaLaunchAttributeID id) {
  return id >= cudaLaunchAttributeIgnore && id <= cudaLaunchAttributeNvlinkUtilCentricScheduling;
}

// Clusters are not there yet; sizes that no chip takes are refused as the real runtime does.
cudaError_t check_cluster(const cudaLaunchConfig_t& c, const cudaLaunchAttribute& a) {
  auto d = a.val.clusterDim;
  uint64_t size = uint64_t{d.x} * d.y * d.z;
  if (size == 0 || size > 8 || c.gridDim.x % d.x || c.gridDim.y % d.y || c.gridDim.z % d.z) return cudaErrorInvalidClusterSize;
  if (size == 1) return cudaSuccess;
  complain("launch", "launches with thread block clusters are not supported yet");
  return cudaErrorNotSupported;
}

// A question about a kernel that needs it compiled.
template <class F> cudaError_t about(const void* function, F f) {
  return on_device([&](State& s) {
    cudaError_t error;
    Kernel* k = find_kernel(s, function, error);
    if (!k) return error;
    TRY(compile(s, *k));
    return f(s, *k);
  });
}

int constant_bytes(const Kernel& k) {
  uint64_t total = 0;
  for (const Variable* v : k.binary->variables)
    if (v->constant) total = (total + 7) / 8 * 8 + k.binary->globals[v->name].size;
  return static_cast<int>(total);
}

int max_threads(State& s, Kernel& k) {
  uint64_t most = s.chip.max_threads_per_block;
  if (k.info->maxntid[0]) most = std::min(most, volume(k.info->maxntid));
  if (k.info->reqntid[0]) most = std::min(most, volume(k.info->reqntid));
  if (int r = registers(s, k)) {
    // A warp gets its registers in units of 256.
    uint64_t warps = s.chip.registers_per_sm / ((uint64_t(r) * 32 + 255) / 256 * 256);
    most = std::min(most, std::max<uint64_t>(warps, 1) * 32);
  }
  return static_cast<int>(most);
}

cudaError_t resident_blocks(int* blocks, const void* function, int block_size, size_t dynamic) {
  return about(function, [&](State& s, Kernel& k) {
    if (!blocks || block_size <= 0) return cudaErrorInvalidValue;
    *blocks = 0;
    if (dynamic > dynamic_limit(s, k) || unsigned(block_size) > s.chip.max_threads_per_block) return cudaSuccess;
    ws_launch_config c{{1, 1, 1}, {unsigned(block_size), 1, 1}, unsigned(dynamic), 0, unsigned(registers(s, k)), 0};
    *blocks = static_cast<int>(ws_resident_blocks(k.info, &c));
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t prepare_launch(State& s, Kernel& k, const dim3& grid, const dim3& block, size_t shared, void** args, bool cooperative,
                           KernelWork& out) {
  ws_launch_config& c = out.config;
  set(c.grid, grid);
  set(c.block, block);
  c.dynamic_shared = static_cast<uint32_t>(shared);  // the real runtime cuts it off, too
  c.cooperative = cooperative;
  TRY(check_shape(s, k, c));
  TRY(compile(s, k));
  TRY(check_kernel(s, k, c));
  if (cooperative) TRY(check_cooperative(s, k, c));
  if (!args && !k.parameters.empty()) return cudaErrorInvalidValue;
  out.kernel = &k;
  out.parameters = pack(k, args);
  return cudaSuccess;
}

cudaError_t perform_launch(State& s, const KernelWork& work) {
  Kernel& k = *work.kernel;
  const ws_launch_config& c = work.config;
  auto result = std::make_unique<ws_launch_result>();
  output_starts();
  int code;
  {
    Unlocked others(s.mutex);
    code = ws_launch(k.info, k.vars.data(), &c, work.parameters.data(), result.get());
  }
  ++k.launches;
  k.blocks += result->blocks;
  k.threads += result->threads;
  k.instructions += result->instructions;
  k.nanoseconds += result->nanoseconds;
  if (code == WS_E_INTERRUPT) return interrupted(s, k, *result);
  if (code == WS_E_LAUNCH) return refuse(k, c, cudaErrorInvalidValue, result->error.message);
  if (code) {
    // As on a GPU, the launch itself succeeds; the next call that looks at the device learns of it.
    s.fault = error_of(result->error);
    report_fault(s, k, c, result->error);
  }
  update_summary(s, false);
  return cudaSuccess;
}

}  // namespace cudart

using namespace cudart;

// ---- launches ----------------------------------------------------------------------------------------
CUDA_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}

CUDA_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pushed.empty()) return answer(cudaErrorMissingConfiguration);
  *grid = pushed.back().grid;
  *block = pushed.back().block;
  *shared = pushed.back().shared;
  *static_cast<cudaStream_t*>(stream) = pushed.back().stream;
  pushed.pop_back();
  return cudaSuccess;
}

CUDA_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream) {
  return launch_checked(kernel, nullptr, {grid, block, shared, stream}, args, false);
}
CUDA_ALIAS(__cudaLaunchKernel_ptsz, __cudaLaunchKernel);

CUDA_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream) {
  return launch_checked(nullptr, function, {grid, block, shared, stream}, args, false);
}
CUDA_ALIAS(cudaLaunchKernel_ptsz, cudaLaunchKernel);

CUDA_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream) {
  return launch_checked(nullptr, function, {grid, block, shared, stream}, args, true);
}
CUDA_ALIAS(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel);

CUDA_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  if (!config || (config->numAttrs && !config->attrs)) return answer(cudaErrorInvalidValue);
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& a = config->attrs[i];
    if (!known_attribute(a.id)) return answer(cudaErrorInvalidValue);
    if (a.id == cudaLaunchAttributeCooperative) cooperative = a.val.cooperative;
    if (a.id == cudaLaunchAttributeClusterDimension)
      if (cudaError_t e = check_cluster(*config, a)) return answer(e);
  }
  return launch_checked(nullptr, function, {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream}, args, cooperative);
}
CUDA_ALIAS(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC);

// ---- about kernels -------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* function) {
  if (!a) return answer(cudaErrorInvalidValue);
  return about(function, [&](State& s, Kernel& k) {
    *a = {};
    a->sharedSizeBytes = k.info->static_shared;
    a->constSizeBytes = constant_bytes(k);
    a->localSizeBytes = k.info->local_bytes;
    a->maxThreadsPerBlock = max_threads(s, k);
    a->numRegs = registers(s, k);
    a->ptxVersion = k.binary->target;
    a->binaryVersion = s.attributes[75] * 10 + s.attributes[76];
    a->maxDynamicSharedSizeBytes = dynamic_limit(s, k);
    a->preferredShmemCarveout = k.carveout;
    a->clusterSchedulingPolicyPreference = k.cluster_policy;
    a->nonPortableClusterSizeAllowed = k.non_portable_cluster;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return about(function, [&](State& s, Kernel& k) {
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || k.info->static_shared + uint64_t(value) > s.chip.shared_per_block_optin) return cudaErrorInvalidValue;
        k.dynamic_limit = value;
        return cudaSuccess;
      case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > 100) return cudaErrorInvalidValue;
        k.carveout = value;
        return cudaSuccess;
      case cudaFuncAttributeNonPortableClusterSizeAllowed:
        k.non_portable_cluster = value;
        return cudaSuccess;
      case cudaFuncAttributeClusterSchedulingPolicyPreference:
        k.cluster_policy = value;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

CUDA_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  return device ? answer(cudaErrorInvalidDevice) : cudaFuncSetAttribute(kernel, attribute, value);
}

// Preferences: nothing here depends on them.
CUDA_API cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return about(function, [](State&, Kernel&) { return cudaSuccess; });
}
CUDA_API cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return about(function, [](State&, Kernel&) { return cudaSuccess; });
}

CUDA_API cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return on_host([&](State& s) {
    cudaError_t error;
    Kernel* k = find_kernel(s, function, error);
    if (!k) return error;
    if (!name) return cudaErrorInvalidValue;
    *name = k->name.c_str();
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return on_device([&](State& s) {
    cudaError_t error;
    Kernel* k = find_kernel(s, function, error);
    if (!k) return error;
    TRY(load(s, *k->binary));
    if (!offset || index >= k->parameters.size()) return cudaErrorInvalidValue;
    *offset = k->parameters[index].offset;
    if (size) *size = k->parameters[index].size;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size, size_t dynamic) {
  return resident_blocks(blocks, function, block_size, dynamic);
}

CUDA_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                            size_t dynamic, unsigned flags) {
  if (flags > 1) return answer(cudaErrorInvalidValue);
  return resident_blocks(blocks, function, block_size, dynamic);
}

CUDA_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size) {
  return about(function, [&](State& s, Kernel& k) {
    if (!bytes || blocks <= 0 || block_size <= 0) return cudaErrorInvalidValue;
    int64_t share = int64_t(s.chip.shared_per_sm / blocks) - s.attributes[111] - k.info->static_shared;
    *bytes = std::min<int64_t>(std::max<int64_t>(share, 0), dynamic_limit(s, k));
    return cudaSuccess;
  });
}
