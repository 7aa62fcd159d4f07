// Switching costs about a nanosecond: callee-saved registers and the stack pointer, nothing else (kernels neither
// change the floating-point control words nor hold locks).
#include "fiber.h"

#include <sys/mman.h>

#include <cstring>

#include "scheduler.h"

#if defined(__x86_64__)
asm(R"(
  .text
  .globl ws_fiber_switch
  .hidden ws_fiber_switch
  .type ws_fiber_switch, @function
  .p2align 4
ws_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  .globl ws_fiber_resume
  .hidden ws_fiber_resume
ws_fiber_resume:
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ws_fiber_switch, .-ws_fiber_switch

  .globl ws_fiber_start
  .hidden ws_fiber_start
  .type ws_fiber_start, @function
  .p2align 4
ws_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
  .size ws_fiber_start, .-ws_fiber_start
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl ws_fiber_switch
  .hidden ws_fiber_switch
  .type ws_fiber_switch, %function
  .p2align 4
ws_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  .globl ws_fiber_resume
  .hidden ws_fiber_resume
ws_fiber_resume:
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size ws_fiber_switch, .-ws_fiber_switch

  .globl ws_fiber_start
  .hidden ws_fiber_start
  .type ws_fiber_start, %function
  .p2align 4
ws_fiber_start:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x19
  blr x20
  brk #0
  .cfi_endproc
  .size ws_fiber_start, .-ws_fiber_start
)");
#else
#error "the emulator runs on x86-64 and aarch64"
#endif

extern "C" void ws_fiber_start();

namespace ws {

namespace {

constexpr size_t kPoisonedLocal = 131072;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

uint8_t* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}

}  // namespace

bool Fiber::in_guard(uintptr_t address) const {
  const auto start = reinterpret_cast<uintptr_t>(mapping);
  return address >= start && address < start + kGuard;
}

void Fiber::reset() {
  assigned = nullptr;
  auto top = reinterpret_cast<uintptr_t>(mapping + mapping_size);
#if defined(__x86_64__)
  // What ws_fiber_resume pops: r15 r14 r13 r12 rbx rbp, return address.
  auto* frame = reinterpret_cast<void**>(top - 16) - 7;
  std::memset(frame, 0, 7 * sizeof(void*));
  frame[2] = reinterpret_cast<void*>(&carrier);
  frame[3] = this;
  frame[6] = reinterpret_cast<void*>(&ws_fiber_start);
#else
  auto* frame = reinterpret_cast<void**>(top - 160);
  std::memset(frame, 0, 160);
  frame[0] = this;
  frame[1] = reinterpret_cast<void*>(&carrier);
  frame[11] = reinterpret_cast<void*>(&ws_fiber_start);
#endif
  sp = frame;
}

FiberPool::~FiberPool() {
  for (Fiber* f : all_) destroy(f);
}

void FiberPool::configure(Worker* worker, size_t stack, size_t local, uint8_t poison) {
  worker_ = worker;
  stack = round_up(stack, 4096);
  local = round_up(local, 4096);
  if (stack > stack_ || local > local_ || (stack_ > 8 * stack && stack_ > (size_t(4) << 20))) {
    trim(0);
    stack_ = stack;
    local_ = local;
  }
  poison_ = poison;
}

Fiber* FiberPool::make() {
  const size_t size = kGuard + round_up(stack_, 65536);
  uint8_t* p = reserve(size);
  if (!p) return nullptr;
  auto* f = new Fiber;
  f->worker = worker_;
  f->mapping = p;
  f->mapping_size = size;
  bool ok = mprotect(p + kGuard, size - kGuard, PROT_READ | PROT_WRITE) == 0;
  if (ok && local_) {
    // A page of no access after it: lanes are checked one by one, this only keeps a mistake of ours from spreading.
    f->local_capacity = local_;
    f->local = reserve(local_ + 65536);
    ok = f->local && mprotect(f->local, local_, PROT_READ | PROT_WRITE) == 0;
    // Recursion reserves megabytes of which little is used: those stay untouched.
    if (ok && poison_ && local_ <= kPoisonedLocal) std::memset(f->local, poison_, local_);
  }
  if (!ok) {
    destroy(f);
    return nullptr;
  }
  f->reset();
  all_.push_back(f);
  return f;
}

void FiberPool::destroy(Fiber* f) {
  munmap(f->mapping, f->mapping_size);
  if (f->local) munmap(f->local, f->local_capacity + 65536);
  delete f;
}

Fiber* FiberPool::take() {
  if (free_.empty()) return make();
  Fiber* f = free_.back();
  free_.pop_back();
  return f;
}

void FiberPool::reset() {
  for (Fiber* f : all_) f->reset();
  free_ = all_;
}

void FiberPool::trim(size_t keep) {
  if (all_.size() <= keep) return;
  while (all_.size() > keep) {
    destroy(all_.back());
    all_.pop_back();
  }
  free_ = all_;
}

}  // namespace ws
