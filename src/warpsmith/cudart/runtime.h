// What the files of this library share: the state of the one emulated device, and the objects behind the
// handles of the CUDA runtime API.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api.h"
#include "service.h"
#include "types.h"

#define CUDA_API extern "C" __attribute__((visibility("default")))
// A second name of a function (the variants for --default-stream per-thread, in which every launch and copy
// is as synchronous as in the others).
#define CUDA_ALIAS(name, of) extern "C" __attribute__((visibility("default"), alias(#of))) decltype(of) name

namespace cudart {

struct State;

// ---- code ------------------------------------------------------------------------------------------
struct Binary;

struct Parameter { uint32_t offset, size; };

// A __global__ function.  cudaKernel_t points to one.
struct Kernel {
  Binary* binary = nullptr;
  std::string name;             // in PTX
  std::string pretty;           // as in the source
  bool present = false;         // the module that was loaded has it
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;

  const ws_kernel_info* info = nullptr;  // once it is compiled
  std::vector<uint64_t> vars;
  cudaError_t broken = cudaSuccess;      // why it cannot be compiled
  int registers = -1;                    // -1: not asked yet, 0: unknown
  int dynamic_limit = -1;                // as set by cudaFuncSetAttribute
  int carveout = -1, cluster_policy = 0, non_portable_cluster = 0;

  uint64_t launches = 0, blocks = 0, threads = 0, instructions = 0, nanoseconds = 0;
};

// A __device__, __constant__ or __managed__ variable that the host knows.
struct Variable {
  Binary* binary = nullptr;
  std::string name;
  void** managed = nullptr;     // where the host's pointer to a managed variable is kept
  bool constant = false;
};

struct Global { uint64_t address = 0, size = 0; };

// A fat binary as the compiler put it into the program, or several that were linked together, loaded on first use.
struct Binary {
  std::vector<const void*> images;
  enum { unused, loaded, failed } state = unused;
  cudaError_t error = cudaSuccess;
  uint32_t number = 0;          // at the service
  int ptx_version = 0, target = 0;
  std::map<std::string, Kernel*> kernels;
  std::vector<Variable*> variables;
  std::map<std::string, Global> globals;
};

// ---- memory ----------------------------------------------------------------------------------------
enum class Memory : uint8_t { device, pinned, managed, pooled };

struct Allocation {
  uint64_t size = 0;
  Memory kind = Memory::device;
  unsigned flags = 0;
  uint32_t number = 0;          // how many allocations came before
  Pool* pool = nullptr;
  void* site[4] = {};           // return addresses of the call that made it
};
struct Registration { uint64_t size = 0; unsigned flags = 0; };  // cudaHostRegister

struct Pool { uint64_t threshold = 0, used = 0, used_high = 0; int reuse[4] = {0, 1, 1, 1}; };

// Elements in rows, and rows in slices or layers; opaque to the program.
struct Array {
  uint64_t address = 0;
  cudaChannelFormatDesc format{};
  cudaExtent extent{};          // as asked for: 0 where there is no such dimension
  unsigned flags = 0;
  size_t element = 0, pitch = 0, plane = 0;
  size_t width() const { return extent.width * element; }
  size_t height() const { return extent.height ? extent.height : 1; }
  size_t depth() const { return extent.depth ? extent.depth : 1; }
};

// Rows of a box in memory: `pitch` bytes apart, planes `plane` apart.
struct Box { char* at; size_t pitch, plane; };

// ---- order -----------------------------------------------------------------------------------------
struct Capture;

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<Capture> capture;  // the graph that its work goes to (graph.h)
};
struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point when;
  std::shared_ptr<Capture> capture;  // it was last recorded in a stream that was captured,
  std::vector<Node*> nodes;          // after these
};

// Something for the device or a host thread to do; called with the state locked once.
using Work = std::function<cudaError_t(State&)>;

// A launch that has been checked.
struct KernelWork {
  Kernel* kernel = nullptr;
  const void* function = nullptr;
  ws_launch_config config{};
  std::vector<uint8_t> parameters;
};

// While a kernel or a function of the program runs, other threads may use the API.
class Unlocked {
 public:
  explicit Unlocked(std::recursive_mutex& m) : mutex_(m) { mutex_.unlock(); }
  ~Unlocked() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;

 private:
  std::recursive_mutex& mutex_;
};

// ---- the device --------------------------------------------------------------------------------------
struct State {
  // Lock order: this one, then the service's.  Never held while a kernel or a callback runs.
  std::recursive_mutex mutex;
  Service service;

  bool tried = false, ready = false;
  int owner = 0;                         // process that initialised: CUDA does not survive a fork
  std::string chip_name;
  ws_chip chip{};
  ws_options options{};
  std::unordered_map<int, int> attributes;  // cudaDeviceAttr -> value
  cudaError_t fault = cudaSuccess;       // what a kernel did wrong; every later call fails with it
  bool dead = false;                     // reset after a fault
  unsigned device_flags = 0;
  uint64_t limits[8] = {};

  std::vector<std::unique_ptr<Binary>> binaries;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Variable>> variables;
  std::unordered_map<const void*, Kernel*> kernel_of;      // by host function
  std::unordered_map<const void*, Variable*> variable_of;  // by host variable

  std::map<uint64_t, Allocation> allocations;
  std::map<uint64_t, Registration> registrations;
  uint32_t allocation_count = 0;
  std::unordered_set<Stream*> streams;
  std::unordered_set<Event*> events;
  std::unordered_set<Pool*> pools;
  std::unordered_set<Array*> arrays;
  std::unordered_map<uint64_t, std::pair<cudaResourceDesc, cudaTextureDesc>> textures, surfaces;
  std::unordered_set<Graph*> graphs;
  std::unordered_set<GraphExec*> graph_execs;
  std::unordered_set<Capture*> captures;  // those that have not ended
  Pool default_pool;
  Pool* current_pool = &default_pool;
  unsigned long long stream_ids = 3;
};

State& state();

using Lock = std::unique_lock<std::recursive_mutex>;

// ---- errors ------------------------------------------------------------------------------------------
// What kernels printed so far, to stdout: called where the host waits for the device (report.cpp).  True if
// there was something.
bool flush_output();

// Remembers an error for cudaGetLastError and gives it back.
cudaError_t answer(cudaError_t e);
extern thread_local bool in_callback;

#define TRY(expression) \
  do { \
    if (cudaError_t failed_ = (expression)) return failed_; \
  } while (0)

// The device is there: the service answered and the emulator is set up.
cudaError_t initialise();
void initialise_limits(State& s);

// Calls that only ask about the device: they work after a kernel failed, too.
template <class F> cudaError_t on_host(F f) {
  cudaError_t e = initialise();
  if (!e) {
    Lock lock(state().mutex);
    e = f(state());
  }
  return answer(e);
}
// Calls that use the device: they fail with what an earlier kernel did wrong.
template <class F> cudaError_t on_device(F f) {
  if (in_callback) return cudaErrorNotPermitted;
  return on_host([&](State& s) {
    if (s.dead) return cudaErrorDevicesUnavailable;
    return s.fault ? s.fault : f(s);
  });
}
// Calls that wait for the device first.
template <class F> cudaError_t waiting(F f) {
  return on_device([&](State& s) {
    flush_output();
    return f(s);
  });
}

// Calls a function of the program: it must not call the API, and may take locks that no call of ours holds.
template <class F> void call_back(State& s, F f) {
  Unlocked others(s.mutex);
  in_callback = true;
  f();
  in_callback = false;
}

// ---- code.cpp ----------------------------------------------------------------------------------------
Kernel* find_kernel(State&, const void* function, cudaError_t& error);
cudaError_t load(State&, Binary&);
cudaError_t compile(State&, Kernel&);
int registers(State&, Kernel&);
void unload_all(State&);
// The variable that a symbol of the API names, with its module loaded.
cudaError_t find_symbol(State&, const void* symbol, Global&);

// ---- memory.cpp --------------------------------------------------------------------------------------
void free_all(State&);
// What the program never freed, if $WARPSMITH_LEAKS asks for it: when it ends or resets the device.
void report_leaks(State&);
// What is at an address, for a message.
std::string describe(const void* p);
// Where the program called for the memory: " at prog.cu:31" or " in main", for reports; empty if unknown.
std::string where_allocated(State&, uint64_t address);

// ---- order.cpp ---------------------------------------------------------------------------------------
bool known(State&, cudaStream_t);

// ---- launch.cpp --------------------------------------------------------------------------------------
// Checks a launch and takes its arguments.
cudaError_t prepare_launch(State&, Kernel&, const dim3& grid, const dim3& block, size_t shared, void** args, bool cooperative, KernelWork& out);
cudaError_t perform_launch(State&, const KernelWork&);

// ---- copy.cpp ----------------------------------------------------------------------------------------
cudaError_t copy_box(const cudaMemcpy3DParms&);
cudaError_t copy_box(const char* call, Box to, Box from, cudaExtent bytes, cudaMemcpyKind);
cudaError_t copy_bytes(void* to, const void* from, size_t count, cudaMemcpyKind kind);
cudaError_t fill_elements(const cudaMemsetParams&);

// ---- texture.cpp -------------------------------------------------------------------------------------
Box box_of(const Array&, size_t x_bytes, size_t y, size_t z);
bool fits(const Array&, const cudaPos& at, const cudaExtent& elements);
void destroy_arrays(State&);

// ---- graph.cpp ---------------------------------------------------------------------------------------
// Does work of a stream now, or keeps it in the graph if the stream is being captured.
cudaError_t enqueue(State&, cudaStream_t, cudaGraphNodeType, Work);
cudaError_t enqueue_kernel(State&, cudaStream_t, KernelWork);
cudaError_t enqueue_host(State&, cudaStream_t, cudaHostFn_t, void* data);
// What keeps a call from being made while streams are captured: work of the legacy stream, calls that wait for a
// stream or for everything, and those that are unsafe then.
cudaError_t capture_forbids_legacy(State&);
cudaError_t capture_forbids_wait(State&, cudaStream_t);
cudaError_t capture_forbids_wait(State&, cudaEvent_t);
cudaError_t capture_forbids_wait(State&);
cudaError_t capture_forbids_unsafe(State&);
bool capturing(State&, cudaStream_t);
cudaError_t capture_record(State&, cudaEvent_t, cudaStream_t, bool& captured);
cudaError_t capture_wait(State&, cudaStream_t, cudaEvent_t);
void capture_ends_with(State&, cudaStream_t);  // the stream is destroyed
void destroy_graphs(State&);

// Copies that wait use the legacy stream.
template <class F> cudaError_t legacy(F f) {
  return waiting([&](State& s) {
    TRY(capture_forbids_legacy(s));
    return f(s);
  });
}

// ---- report.cpp --------------------------------------------------------------------------------------
void capture_output();
void output_starts();           // a launch begins
// One sentence about a call that was refused, on stderr and for the parent.
void complain(const char* kind, const std::string& message);
void report_fault(State&, const Kernel&, const ws_launch_config&, const ws_error&);
void update_summary(State&, bool now);

// The text with mangled C++ names made readable.
std::string readable(const std::string& text);
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace cudart
