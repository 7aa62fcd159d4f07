// The program's device code: what the compiler's start-up code registers, and how it is loaded and
// compiled on first use.
#include <algorithm>
#include <dlfcn.h>

#include "runtime.h"

namespace cudart {
namespace {

Kernel& kernel_named(State& s, Binary& b, const std::string& name) {
  Kernel*& slot = b.kernels[name];
  if (!slot) {
    s.kernels.push_back(std::make_unique<Kernel>());
    slot = s.kernels.back().get();
    slot->binary = &b;
    slot->name = name;
    slot->pretty = readable(name);
  }
  return *slot;
}

// A fat binary starts with its magic number, 16-bit version and header size, and the size of the rest.
bool image_size(const void* image, size_t& size) {
  struct { uint32_t magic; uint16_t version, header; uint64_t rest; } head;
  memcpy(&head, image, sizeof head);
  size = head.header + head.rest;
  return head.magic == 0xBA55ED50u;
}

struct Relocation { uint64_t offset; bool function; std::string symbol; int64_t addend; };
struct NewVariable {
  std::string name, init;
  uint64_t size;
  bool constant, managed;
  std::vector<Relocation> relocations;
};

NewVariable read_variable(Reader& r) {
  NewVariable v;
  v.name = r.text();
  v.size = r.u64();
  v.constant = r.get<uint8_t>();
  v.managed = r.get<uint8_t>();
  v.init = r.text();
  for (uint32_t n = r.u32(); n && r.ok(); --n) {
    Relocation at;
    at.offset = r.u64();
    at.function = r.get<uint8_t>();
    at.symbol = r.text();
    at.addend = r.get<int64_t>();
    v.relocations.push_back(at);
  }
  return v;
}

void read_kernel(State& s, Binary& b, Reader& r) {
  Kernel& k = kernel_named(s, b, r.text());
  k.present = true;
  k.parameter_bytes = r.u32();
  k.parameters.resize(r.u32());
  for (Parameter& p : k.parameters) {
    p.offset = r.u32();
    p.size = r.u32();
    if (!r.ok()) break;
  }
}

// Memory for the module's variables, filled as the source says (zero where it says nothing).
cudaError_t place_variables(Binary& b, const std::vector<NewVariable>& variables) {
  for (const NewVariable& v : variables) {
    uint64_t size = std::max<uint64_t>(v.size, 1);
    uint64_t address = v.managed ? ws_malloc_managed(size, v.name.c_str()) : ws_malloc(size, v.name.c_str());
    if (!address) {
      complain("memory", format("no memory for the variable %s of %llu bytes: %s", v.name.c_str(),
                                static_cast<unsigned long long>(v.size), ws_last_message()));
      return cudaErrorMemoryAllocation;
    }
    b.globals[v.name] = {address, v.size};
  }
  for (const NewVariable& v : variables) {
    uint64_t address = b.globals[v.name].address;
    std::string bytes = v.init;
    bytes.resize(v.size);
    for (const Relocation& at : v.relocations) {
      uint64_t value = at.addend;
      if (at.function) {
        value += WS_FUNCTION_BASE + 16 * strtoull(at.symbol.c_str(), nullptr, 10);
      } else {
        auto to = b.globals.find(at.symbol);
        if (to == b.globals.end()) {
          complain("compile", format("%s is initialised with the address of %s, which this module does not define",
                                     v.name.c_str(), at.symbol.c_str()));
          return cudaErrorInvalidPtx;
        }
        value += to->second.address;
      }
      if (at.offset + sizeof value <= bytes.size()) memcpy(&bytes[at.offset], &value, sizeof value);
    }
    ws_copy_in(address, bytes.data(), bytes.size());
    if (v.constant) ws_set_readonly(address, 1);
  }
  for (Variable* v : b.variables)
    if (v->managed) *v->managed = reinterpret_cast<void*>(b.globals[v->name].address);
  return cudaSuccess;
}

cudaError_t load_now(State& s, Binary& b) {
  Writer question;
  question.put(static_cast<uint32_t>(b.images.size()));
  for (const void* image : b.images) {
    size_t size = 0;
    if (!image_size(image, size)) {
      complain("compile", "the program's device code is not a fat binary of CUDA 13");
      return cudaErrorInvalidKernelImage;
    }
    question.text(static_cast<const char*>(image), size);
  }
  Reader r;
  std::string error;
  if (!s.service.ask(Ask::module, question, r, error)) {
    complain("compile", error);
    return cudaErrorInitializationError;
  }
  cudaError_t refused = static_cast<cudaError_t>(r.u32());
  std::string message = r.text();
  if (refused) {
    complain("compile", message);
    return refused;
  }
  b.number = r.u32();
  b.ptx_version = r.get<int32_t>();
  b.target = r.get<int32_t>();
  std::vector<NewVariable> variables;
  for (uint32_t n = r.u32(); n && r.ok(); --n) variables.push_back(read_variable(r));
  for (uint32_t n = r.u32(); n && r.ok(); --n) read_kernel(s, b, r);
  if (!r.ok()) {
    complain("compile", "the answer of the process that compiles the kernels cannot be understood");
    return cudaErrorUnknown;
  }
  return place_variables(b, variables);
}

cudaError_t compile_now(State& s, Kernel& k) {
  Writer question;
  question.put(k.binary->number).text(k.name);
  Reader r;
  std::string error;
  if (!s.service.ask(Ask::kernel, question, r, error)) {
    complain("compile", error);
    return cudaErrorInitializationError;
  }
  cudaError_t refused = static_cast<cudaError_t>(r.u32());
  std::string path = r.text(), symbol = r.text();
  if (refused) {
    complain("compile", path);
    return refused;
  }
  // Kernels call the runtime's functions, which are not in the global scope if this library itself was
  // loaded by a plugin mechanism.
  static void* runtime = dlopen("libwarpsmith_runtime.so", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  (void)runtime;
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* info = object ? dlsym(object, symbol.c_str()) : nullptr;
  if (!info) {
    complain("compile", format("%s: the compiled kernel cannot be loaded: %s", k.pretty.c_str(), dlerror()));
    return cudaErrorInvalidKernelImage;
  }
  const ws_kernel_info* described = static_cast<const ws_kernel_info*>(info);
  if (described->abi != WS_ABI_VERSION) {
    complain("compile", format("%s was compiled for another version of the emulator (%u, this is %u); remove the cache",
                               k.pretty.c_str(), described->abi, WS_ABI_VERSION));
    return cudaErrorInvalidKernelImage;
  }
  k.vars.clear();
  for (uint32_t i = 0; i < described->var_count; ++i) {
    auto at = k.binary->globals.find(described->vars[i]);
    if (at == k.binary->globals.end()) {
      complain("compile", format("%s uses the variable %s, which no module of the program defines", k.pretty.c_str(),
                                 described->vars[i]));
      return cudaErrorSymbolNotFound;
    }
    k.vars.push_back(at->second.address);
  }
  k.info = described;
  return cudaSuccess;
}

}  // namespace

cudaError_t load(State& s, Binary& b) {
  if (b.state == Binary::unused) {
    b.error = load_now(s, b);
    b.state = b.error ? Binary::failed : Binary::loaded;
  }
  return b.error;
}

cudaError_t compile(State& s, Kernel& k) {
  if (k.info || k.broken) return k.broken;
  TRY(load(s, *k.binary));
  if (!k.present) {
    complain("compile", format("the device code of the program has no kernel %s", k.pretty.c_str()));
    return k.broken = cudaErrorInvalidDeviceFunction;
  }
  return k.broken = compile_now(s, k);
}

int registers(State& s, Kernel& k) {
  if (k.registers >= 0) return k.registers;
  Writer question;
  question.put(k.binary->number).text(k.name);
  Reader r;
  std::string error;
  k.registers = s.service.ask(Ask::registers, question, r, error) ? static_cast<int>(r.u32()) : 0;
  return k.registers;
}

// After cudaDeviceReset: variables start again with their initial values.
void unload_all(State& s) {
  for (auto& b : s.binaries) {
    for (auto& g : b->globals) ws_free(g.second.address);
    b->globals.clear();
    b->state = Binary::unused;
    for (auto& k : b->kernels) {
      k.second->info = nullptr;
      k.second->broken = cudaSuccess;
      k.second->dynamic_limit = -1;
    }
  }
}

Kernel* find_kernel(State& s, const void* function, cudaError_t& error) {
  error = function ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
  auto found = s.kernel_of.find(function);
  if (found != s.kernel_of.end()) return found->second;
  for (auto& k : s.kernels)  // a cudaKernel_t goes wherever a function does
    if (k.get() == function) return k.get();
  return nullptr;
}

}  // namespace cudart

using namespace cudart;

// ---- what the compiler's start-up code calls -----------------------------------------------------------
struct Wrapper { int magic, version; const void* data; void* more; };

CUDA_API void** __cudaRegisterFatBinary(void* wrapper) {
  State& s = state();
  Lock lock(s.mutex);
  s.binaries.push_back(std::make_unique<Binary>());
  s.binaries.back()->images.push_back(static_cast<Wrapper*>(wrapper)->data);
  return reinterpret_cast<void**>(s.binaries.back().get());
}

// One of the objects with relocatable device code that were linked together (toolchains/devicelink.py writes
// the calls): all of a group are one binary.
CUDA_API void __warpsmithRegisterLinkedBinary(void*** group, void* wrapper, void (*callback)(void**)) {
  if (*group) {
    State& s = state();
    Lock lock(s.mutex);
    reinterpret_cast<Binary*>(*group)->images.push_back(static_cast<Wrapper*>(wrapper)->data);
  } else {
    *group = __cudaRegisterFatBinary(wrapper);
  }
  callback(*group);
}

CUDA_API void __cudaRegisterFatBinaryEnd(void**) {}

CUDA_API void __cudaUnregisterFatBinary(void** handle) {
  State& s = state();
  Lock lock(s.mutex);
  auto* b = reinterpret_cast<Binary*>(handle);
  for (auto k = s.kernel_of.begin(); k != s.kernel_of.end();) k = k->second->binary == b ? s.kernel_of.erase(k) : std::next(k);
  for (auto v = s.variable_of.begin(); v != s.variable_of.end();)
    v = v->second->binary == b ? s.variable_of.erase(v) : std::next(v);
}

CUDA_API void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*,
                                     dim3*, int*) {
  State& s = state();
  Lock lock(s.mutex);
  s.kernel_of[host] = &kernel_named(s, *reinterpret_cast<Binary*>(handle), name);
}

static Variable& add_variable(State& s, void** handle, const char* name, bool constant) {
  s.variables.push_back(std::make_unique<Variable>());
  Variable& v = *s.variables.back();
  v.binary = reinterpret_cast<Binary*>(handle);
  v.name = name;
  v.constant = constant;
  v.binary->variables.push_back(&v);
  return v;
}

CUDA_API void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t, int constant, int) {
  State& s = state();
  Lock lock(s.mutex);
  s.variable_of[host] = &add_variable(s, handle, name, constant);
}

CUDA_API void __cudaRegisterManagedVar(void** handle, void** slot, char*, const char* name, int, size_t, int, int) {
  State& s = state();
  Lock lock(s.mutex);
  add_variable(s, handle, name, false).managed = slot;
}

// The host is about to use a managed variable of this module.
CUDA_API char __cudaInitModule(void** handle) {
  if (initialise()) return 1;
  State& s = state();
  Lock lock(s.mutex);
  load(s, *reinterpret_cast<Binary*>(handle));
  return 1;
}

CUDA_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  State& s = state();
  Lock lock(s.mutex);
  cudaError_t error;
  *kernel = find_kernel(s, function, error);
  // Nothing that the program did: the launch itself reports it.
  return *kernel ? cudaSuccess : error;
}

CUDA_API cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return on_host([&](State& s) {
    if (!kernel) return cudaErrorInvalidValue;
    cudaError_t error;
    *kernel = find_kernel(s, function, error);
    return *kernel ? cudaSuccess : error;
  });
}

// ---- symbols ---------------------------------------------------------------------------------------------
namespace cudart {

cudaError_t find_symbol(State& s, const void* symbol, Global& found) {
  auto known = s.variable_of.find(symbol);
  if (known != s.variable_of.end()) {
    Variable& v = *known->second;
    TRY(load(s, *v.binary));
    auto global = v.binary->globals.find(v.name);
    if (global == v.binary->globals.end()) return cudaErrorInvalidSymbol;
    found = global->second;
    return cudaSuccess;
  }
  // A managed variable is named by its own address.
  for (auto& v : s.variables) {
    if (!v->managed || *v->managed != symbol || !symbol) continue;
    found = v->binary->globals[v->name];
    return cudaSuccess;
  }
  return cudaErrorInvalidSymbol;
}

}  // namespace cudart

CUDA_API cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return on_device([&](State& s) {
    if (!address) return cudaErrorInvalidValue;
    Global g;
    TRY(find_symbol(s, symbol, g));
    *address = reinterpret_cast<void*>(g.address);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return on_device([&](State& s) {
    if (!size) return cudaErrorInvalidValue;
    Global g;
    TRY(find_symbol(s, symbol, g));
    *size = g.size;
    return cudaSuccess;
  });
}
