#include "faults.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "groups.h"
#include "memory.h"
#include "scheduler.h"

namespace ws {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction g_previous[4];
std::atomic<bool> g_explain{false};
struct sigaction g_previous_interrupt;

int slot(int signal) {
  for (int i = 0; i < 4; ++i)
    if (kSignals[i] == signal) return i;
  return 0;
}

// Leaves the signal handler for the worker's own stack.
void drop_fiber(Worker& k, ucontext_t* context) {
#if defined(__x86_64__)
  context->uc_mcontext.gregs[REG_RSI] = greg_t(k.main_sp);
  context->uc_mcontext.gregs[REG_RIP] = greg_t(&ws_fiber_resume);
  context->uc_mcontext.gregs[REG_RSP] = greg_t(k.main_sp);
#else
  context->uc_mcontext.regs[1] = reinterpret_cast<unsigned long long>(k.main_sp);
  context->uc_mcontext.pc = reinterpret_cast<unsigned long long>(&ws_fiber_resume);
  context->uc_mcontext.sp = reinterpret_cast<unsigned long long>(k.main_sp);
#endif
}

void explain(uint64_t address) {
  char text[512], label[128] = "";
  uint64_t base = 0, size = 0;
  uint32_t number = 0;
  int n;
  if (memory::try_find(address, &base, &size, &number, label, sizeof label))
    n = std::snprintf(text, sizeof text,
                      "warpsmith: the host program touched device memory at 0x%llx (%llu bytes into the %llu-byte allocation %s%s%s): "
                      "host code cannot use device pointers; copy the data with cudaMemcpy first\n",
                      static_cast<unsigned long long>(address), static_cast<unsigned long long>(address - base),
                      static_cast<unsigned long long>(size), label[0] ? "\"" : "", label[0] ? label : "", label[0] ? "\"" : "");
  else
    n = std::snprintf(text, sizeof text,
                      "warpsmith: the host program touched device memory at 0x%llx: host code cannot use device pointers; copy the data with cudaMemcpy first\n",
                      static_cast<unsigned long long>(address));
  std::fflush(stdout);
  if (write(2, text, size_t(n)) < 0) return;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Worker* k = this_worker();
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool sent = info->si_code <= 0;  // by kill(): not a fault of the code that runs
  if (k && !sent && k->current && k->current->state == State::running && !k->fault.signal) {
    k->fault.signal = signal;
    k->fault.address = signal == SIGSEGV || signal == SIGBUS ? address : 0;
    k->fault.stack = signal == SIGSEGV && k->current->fiber->in_guard(address);
    drop_fiber(*k, static_cast<ucontext_t*>(context));
    return;
  }
  if (!sent && signal == SIGSEGV && g_explain && memory::in_device_range(address)) {
    explain(address);
    ::signal(SIGSEGV, SIG_DFL);
    return;  // the access faults again and ends the process
  }
  const struct sigaction& previous = g_previous[slot(signal)];
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL) {
    ::signal(signal, SIG_DFL);
    if (sent) raise(signal);
  } else if (previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  }
}

void on_interrupt(int) { ws_interrupt(); }

bool main_thread() { return syscall(SYS_gettid) == getpid(); }

// A signal stack that lives as long as its thread.
struct SignalStack {
  static constexpr size_t kSize = 65536;
  void* memory = nullptr;
  ~SignalStack() {
    if (!memory) return;
    stack_t off{};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
    munmap(memory, kSize);
  }
};

}  // namespace

void prepare_thread() {
  static thread_local SignalStack mine;
  stack_t now{};
  sigaltstack(nullptr, &now);
  if (!(now.ss_flags & SS_DISABLE) && now.ss_size >= 16384) return;
  if (!mine.memory) {
    void* p = mmap(nullptr, SignalStack::kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    mine.memory = p;
  }
  stack_t s{};
  s.ss_sp = mine.memory;
  s.ss_size = SignalStack::kSize;
  sigaltstack(&s, nullptr);
}

void install_fault_handlers() {
  for (int i = 0; i < 4; ++i) {
    struct sigaction now{};
    sigaction(kSignals[i], nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) continue;
    g_previous[i] = now;
    struct sigaction ours{};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

InterruptGuard::InterruptGuard() {
  if (!main_thread()) return;
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN) return;
  struct sigaction ours{};
  ours.sa_handler = on_interrupt;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGINT, &ours, &g_previous_interrupt);
  installed_ = true;
}

InterruptGuard::~InterruptGuard() {
  if (installed_) sigaction(SIGINT, &g_previous_interrupt, nullptr);
}

// On the worker's own stack, after on_fault.
void report_fault(Worker& k) {
  Warp& w = *k.current;
  const Fault& f = k.fault;
  Failure out;
  out.lanes = w.live;
  if (f.stack) {
    out.code = WS_E_STACK;
    out.what = "device stack overflow: the calls of this kernel are nested too deeply (or recursion does not end)";
  } else if (f.signal == SIGSEGV || f.signal == SIGBUS) {
    out.code = WS_E_SEGV;
    const uint64_t device = uint64_t(f.address) - uint64_t(memory::delta());
    uint64_t base, size;
    if (f.address == 0) out.what = "illegal memory access at an address that no memory can have";
    else out.what = format("illegal memory access at 0x%llx: ", static_cast<unsigned long long>(device)) + describe_address(device, &base, &size);
    out.what += "; run with checks on to see the instruction and the thread";
  } else {
    out.code = WS_E_TRAP;
    out.what = format("the compiled kernel stopped with signal %d (%s)", f.signal, strsignal(f.signal));
  }
  record(w, out, nullptr);
}

}  // namespace ws

void ws_explain_host_faults(int on) {
  std::string problem;
  if (!ws::memory::init(&problem)) return;
  ws::prepare_thread();
  ws::install_fault_handlers();
  ws::g_explain = on != 0;
}
