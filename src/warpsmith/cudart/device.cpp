// The one emulated device: how it starts, what it says of itself, its limits.
#include <cstdlib>
#include <unistd.h>

#include "runtime.h"

namespace cudart {
namespace {

constexpr int kVersion = 13000;

void read_chip(State& s, Reader& r) {
  s.chip_name = r.text();
  ws_chip& c = s.chip;
  for (uint32_t* field : {&c.sm_count, &c.max_threads_per_block, &c.max_warps_per_sm, &c.max_blocks_per_sm, &c.registers_per_sm,
                          &c.shared_per_sm, &c.shared_per_block, &c.shared_per_block_optin})
    *field = r.u32();
  c.global_memory = r.u64();
  for (uint32_t& n : c.max_grid) n = r.u32();
  for (uint32_t& n : c.max_block) n = r.u32();
  ws_options& o = s.options;
  for (uint32_t* field : {&o.threads, &o.check, &o.order, &o.seed, &o.poison, &o.patience_ms}) *field = r.u32();
  for (uint32_t n = r.u32(); n && r.ok(); --n) {
    int attribute = r.get<int32_t>();
    s.attributes[attribute] = r.get<int32_t>();
  }
}

cudaError_t start(State& s) {
  std::string error;
  Reader r;
  Writer hello;
  hello.put(kProtocol).put(static_cast<uint32_t>(getpid()));
  if (!s.service.connect(error) || !s.service.ask(Ask::hello, hello, r, error)) {
    complain("start", error);
    return cudaErrorInitializationError;
  }
  if (uint32_t refused = r.u32()) {
    complain("start", r.text());
    return static_cast<cudaError_t>(refused);
  }
  read_chip(s, r);
  if (!r.ok()) {
    complain("start", "the warpsmith process that serves this program is of another version; link the program again");
    return cudaErrorInitializationError;
  }
  if (ws_init(&s.chip, &s.options)) {
    complain("start", ws_last_message());
    return cudaErrorInitializationError;
  }
  capture_output();
  ws_explain_host_faults(1);
  initialise_limits(s);
  return cudaSuccess;
}

}  // namespace

State& state() {
  // Never destroyed: start-up code and exit handlers of the program may call at any time.
  static State* s = new State;
  return *s;
}

cudaError_t initialise() {
  State& s = state();
  Lock lock(s.mutex);
  if (s.ready && s.owner != getpid()) return cudaErrorInitializationError;
  if (s.tried) return s.ready ? cudaSuccess : cudaErrorInitializationError;
  s.tried = true;
  s.owner = getpid();
  cudaError_t e = start(s);
  s.ready = !e;
  return e;
}

// As an H200 reports them.
void initialise_limits(State& s) {
  const uint64_t persisting = uint64_t(s.attributes[108]) * 3 / 10;
  const uint64_t defaults[] = {1024, 8650752, ws_heap_limit(), 0, 2048, 64, persisting, s.chip.shared_per_block_optin};
  std::copy(std::begin(defaults), std::end(defaults), s.limits);
}

}  // namespace cudart

using namespace cudart;

// ---- the device ------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaGetDeviceCount(int* count) {
  return on_host([&](State&) { return count ? (*count = 1, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGetDevice(int* device) {
  return on_host([&](State&) { return device ? (*device = 0, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaSetDevice(int device) {
  return on_host([&](State&) { return device ? cudaErrorInvalidDevice : cudaSuccess; });
}

CUDA_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

CUDA_API cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return on_host([&](State&) { return device && wanted ? (*device = 0, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaSetValidDevices(int* devices, int count) {
  return on_host([&](State&) {
    for (int i = 0; i < count; ++i)
      if (!devices || devices[i]) return cudaErrorInvalidDevice;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return on_host([&](State& s) { return flags > kDeviceFlagsAll ? cudaErrorInvalidValue : (s.device_flags = flags, cudaSuccess); });
}
CUDA_API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return on_host([&](State& s) { return flags ? (*flags = s.device_flags, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaDeviceSynchronize() {
  return waiting([](State& s) { return capture_forbids_wait(s); });
}

CUDA_API cudaError_t cudaDeviceReset() {
  return on_host([](State& s) {
    flush_output();
    if (s.fault) s.dead = true;  // as measured: the process gets no device any more
    report_leaks(s);
    destroy_graphs(s);
    destroy_arrays(s);
    free_all(s);
    unload_all(s);
    for (Stream* stream : s.streams) delete stream;
    for (Event* event : s.events) delete event;
    for (Pool* pool : s.pools) delete pool;
    s.streams.clear();
    s.events.clear();
    s.pools.clear();
    s.current_pool = &s.default_pool;
    initialise_limits(s);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return answer(cudaErrorInvalidValue);
  *version = kVersion;
  return cudaSuccess;
}
CUDA_API cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

// ---- properties ------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return on_host([&](State& s) {
    if (!value) return cudaErrorInvalidValue;
    if (device) return cudaErrorInvalidDevice;
    auto found = s.attributes.find(attribute);
    if (found == s.attributes.end()) return cudaErrorInvalidValue;
    *value = found->second;
    return cudaSuccess;
  });
}

// Fields of cudaDeviceProp that are device attributes, by the attribute's number.
#define WARPSMITH_PROPERTIES(X) \
  X(sharedMemPerBlock, 8) X(totalConstMem, 9) X(warpSize, 10) X(memPitch, 11) X(regsPerBlock, 12) X(textureAlignment, 14) \
  X(multiProcessorCount, 16) X(integrated, 18) X(canMapHostMemory, 19) X(maxTexture1D, 21) X(maxTexture2D[0], 22) \
  X(maxTexture2D[1], 23) X(maxTexture3D[0], 24) X(maxTexture3D[1], 25) X(maxTexture3D[2], 26) X(maxTexture2DLayered[0], 27) \
  X(maxTexture2DLayered[1], 28) X(maxTexture2DLayered[2], 29) X(surfaceAlignment, 30) X(concurrentKernels, 31) X(ECCEnabled, 32) \
  X(pciBusID, 33) X(pciDeviceID, 34) X(tccDriver, 35) X(memoryBusWidth, 37) X(l2CacheSize, 38) X(maxThreadsPerMultiProcessor, 39) \
  X(asyncEngineCount, 40) X(unifiedAddressing, 41) X(maxTexture1DLayered[0], 42) X(maxTexture1DLayered[1], 43) \
  X(maxTexture2DGather[0], 45) X(maxTexture2DGather[1], 46) X(maxTexture3DAlt[0], 47) X(maxTexture3DAlt[1], 48) \
  X(maxTexture3DAlt[2], 49) X(pciDomainID, 50) X(texturePitchAlignment, 51) X(maxTextureCubemap, 52) \
  X(maxTextureCubemapLayered[0], 53) X(maxTextureCubemapLayered[1], 54) X(maxSurface1D, 55) X(maxSurface2D[0], 56) \
  X(maxSurface2D[1], 57) X(maxSurface3D[0], 58) X(maxSurface3D[1], 59) X(maxSurface3D[2], 60) X(maxSurface1DLayered[0], 61) \
  X(maxSurface1DLayered[1], 62) X(maxSurface2DLayered[0], 63) X(maxSurface2DLayered[1], 64) X(maxSurface2DLayered[2], 65) \
  X(maxSurfaceCubemap, 66) X(maxSurfaceCubemapLayered[0], 67) X(maxSurfaceCubemapLayered[1], 68) X(maxTexture2DLinear[0], 70) \
  X(maxTexture2DLinear[1], 71) X(maxTexture2DLinear[2], 72) X(maxTexture2DMipmap[0], 73) X(maxTexture2DMipmap[1], 74) X(major, 75) \
  X(minor, 76) X(maxTexture1DMipmap, 77) X(streamPrioritiesSupported, 78) X(globalL1CacheSupported, 79) X(localL1CacheSupported, 80) \
  X(sharedMemPerMultiprocessor, 81) X(regsPerMultiprocessor, 82) X(managedMemory, 83) X(isMultiGpuBoard, 84) \
  X(multiGpuBoardGroupID, 85) X(hostNativeAtomicSupported, 86) X(pageableMemoryAccess, 88) X(concurrentManagedAccess, 89) \
  X(computePreemptionSupported, 90) X(canUseHostPointerForRegisteredMem, 91) X(cooperativeLaunch, 95) X(sharedMemPerBlockOptin, 97) \
  X(hostRegisterSupported, 99) X(pageableMemoryAccessUsesHostPageTables, 100) X(directManagedMemAccessFromHost, 101) \
  X(maxBlocksPerMultiProcessor, 106) X(persistingL2CacheMaxSize, 108) X(accessPolicyMaxWindowSize, 109) \
  X(reservedSharedMemPerBlock, 111) X(sparseCudaArraySupported, 112) X(hostRegisterReadOnlySupported, 113) \
  X(timelineSemaphoreInteropSupported, 114) X(memoryPoolsSupported, 115) X(gpuDirectRDMASupported, 116) \
  X(gpuDirectRDMAFlushWritesOptions, 117) X(gpuDirectRDMAWritesOrdering, 118) X(memoryPoolSupportedHandleTypes, 119) \
  X(clusterLaunch, 120) X(deferredMappingCudaArraySupported, 121) X(ipcEventSupported, 125) X(deviceNumaConfig, 130) \
  X(deviceNumaId, 131) X(mpsEnabled, 133) X(hostNumaId, 134) X(gpuPciDeviceID, 139) X(gpuPciSubsystemID, 140) \
  X(hostNumaMultinodeIpcSupported, 143)

CUDA_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return on_host([&](State& s) {
    if (!p) return cudaErrorInvalidValue;
    if (device) return cudaErrorInvalidDevice;
    *p = {};
    snprintf(p->name, sizeof p->name, "%s", s.chip_name.c_str());
    memcpy(p->uuid.bytes, "warpsmith-device", sizeof p->uuid.bytes);
    p->totalGlobalMem = s.chip.global_memory;
    p->maxThreadsPerBlock = s.attributes[1];
    for (int i = 0; i < 3; ++i) {
      p->maxThreadsDim[i] = s.attributes[2 + i];
      p->maxGridSize[i] = s.attributes[5 + i];
    }
    p->unifiedFunctionPointers = s.attributes[129];
#define WARPSMITH_FILL(field, attribute) p->field = s.attributes[attribute];
    WARPSMITH_PROPERTIES(WARPSMITH_FILL)
#undef WARPSMITH_FILL
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return on_host([&](State& s) {
    if (device) return cudaErrorInvalidDevice;
    std::string id = format("%04x:%02x:%02x.0", s.attributes[50], s.attributes[33], s.attributes[34]);
    if (!text || size <= static_cast<int>(id.size())) return cudaErrorInvalidValue;
    memcpy(text, id.c_str(), id.size() + 1);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return on_host([&](State&) {
    if (!device || !text) return cudaErrorInvalidValue;
    char own[32];
    TRY(cudaDeviceGetPCIBusId(own, sizeof own, 0));
    if (strcasecmp(own, text) != 0) return cudaErrorInvalidDevice;
    *device = 0;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return on_host([&](State&) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
  });
}

// ---- limits --------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return on_device([&](State& s) {
    if (!value || limit < 0 || limit > kLimitSharedMemory) return cudaErrorInvalidValue;
    if (limit == cudaLimitDevRuntimeSyncDepth) return cudaErrorUnsupportedLimit;
    *value = s.limits[limit];
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return on_device([&](State& s) {
    if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorInvalidValue;
    if (limit == cudaLimitDevRuntimeSyncDepth) return cudaErrorUnsupportedLimit;
    if (limit == cudaLimitStackSize && value > 512 * 1024) return cudaErrorInvalidValue;
    if (limit == cudaLimitMallocHeapSize && ws_set_heap_limit(value)) return cudaErrorInvalidValue;
    s.limits[limit] = limit == cudaLimitStackSize ? (value + 15) / 16 * 16 : value;
    return cudaSuccess;
  });
}

// Preferences that change nothing here.
CUDA_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return on_device([](State&) { return cudaSuccess; });
}
CUDA_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return on_device([&](State&) { return config ? (*config = cudaFuncCachePreferNone, cudaSuccess) : cudaErrorInvalidValue; });
}
CUDA_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return on_device([](State&) { return cudaSuccess; });
}
CUDA_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return on_device([&](State&) { return config ? (*config = cudaSharedMemBankSizeDefault, cudaSuccess) : cudaErrorInvalidValue; });
}
CUDA_API cudaError_t cudaCtxResetPersistingL2Cache() {
  return on_device([](State&) { return cudaSuccess; });
}
CUDA_API cudaError_t cudaProfilerStart() {
  return on_host([](State&) { return cudaSuccess; });
}
CUDA_API cudaError_t cudaProfilerStop() {
  return on_host([](State&) { return cudaSuccess; });
}

// ---- other devices: there are none ------------------------------------------------------------------------
CUDA_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return on_host([&](State&) {
    if (!can) return cudaErrorInvalidValue;
    if (device || peer) return cudaErrorInvalidDevice;
    *can = 0;
    return cudaSuccess;
  });
}
CUDA_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return on_device([&](State&) { return flags ? cudaErrorInvalidValue : peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported; });
}
CUDA_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return on_device([&](State&) { return peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled; });
}
CUDA_API cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  return on_host([&](State&) { return value ? cudaErrorInvalidDevice : cudaErrorInvalidValue; });
}
