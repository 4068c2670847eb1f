// SPDX-License-Identifier: MIT
#include "sim/fibre.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FREEHOLD_SIM_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FREEHOLD_SIM_ASAN 1
#endif
#if defined(FREEHOLD_SIM_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
// An abandoned fibre never returns from its functions, so their fake frames would pile up.
extern "C" const char* __asan_default_options();
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }
#endif

namespace freehold::sim {
namespace {
constexpr std::size_t kGuardBytes = 4096;
}

Fibre::Fibre(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {
  void* memory = mmap(nullptr, stack_bytes + kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<std::byte*>(memory) + kGuardBytes;
  if (mprotect(stack_, stack_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Fibre::~Fibre() {
  if (stack_ != nullptr) munmap(stack_ - kGuardBytes, stack_bytes_ + kGuardBytes);
}

#if defined(FREEHOLD_SIM_OWN_SWITCH)

// change(rdi: where to save the stack pointer, rsi: the stack pointer to continue with). The frame that start() lays out
// looks like one saved by change: r15 r14 r13 r12 rbx rbp, return address.
asm(R"(
.text
.p2align 4
.type freehold_sim_change, @function
freehold_sim_change:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size freehold_sim_change, .-freehold_sim_change
.type freehold_sim_entry, @function
freehold_sim_entry:
  movq %r12, %rdi
  callq *%rbx
  ud2
.size freehold_sim_entry, .-freehold_sim_entry
)");
extern "C" void freehold_sim_change(void** save, void* resume) noexcept;
extern "C" void freehold_sim_entry() noexcept;

void Fibre::start(void (*entry)(void*), void* argument) noexcept {
#if defined(FREEHOLD_SIM_ASAN)
  __asan_unpoison_memory_region(stack_, stack_bytes_);
#endif
  entry_ = entry;
  argument_ = argument;
  auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + stack_bytes_);
  *--top = 0;  // keeps the stack 16-byte aligned at the call, and ends a debugger's backtrace
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(&freehold_sim_entry);
  *--top = 0;                                                // rbp
  *--top = reinterpret_cast<std::uintptr_t>(&Fibre::begin);  // rbx
  *--top = reinterpret_cast<std::uintptr_t>(this);           // r12
  for (int i = 0; i < 3; ++i) *--top = 0;                    // r13 r14 r15
  saved_ = top;
}

#if defined(FREEHOLD_SIM_ASAN)
namespace {
Fibre* g_left = nullptr;  // the one that handed over last
const void* g_callers_stack = nullptr;
std::size_t g_callers_stack_bytes = 0;
}  // namespace
#endif

void Fibre::arrive([[maybe_unused]] void* fake_stack) noexcept {
#if defined(FREEHOLD_SIM_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
  if (g_left->stack_ == nullptr) {
    g_callers_stack = bottom;
    g_callers_stack_bytes = bytes;
  }
#endif
}

void Fibre::change(Fibre& from, Fibre& to) noexcept {
  void* fake_stack = nullptr;
#if defined(FREEHOLD_SIM_ASAN)
  g_left = &from;
  const bool own = to.stack_ != nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, own ? to.stack_ : g_callers_stack,
                                 own ? to.stack_bytes_ : g_callers_stack_bytes);
#endif
  freehold_sim_change(&from.saved_, to.saved_);
  arrive(fake_stack);
}

#else

void Fibre::start(void (*entry)(void*), void* argument) noexcept {
  entry_ = entry;
  argument_ = argument;
  getcontext(&saved_);
  saved_.uc_stack.ss_sp = stack_;
  saved_.uc_stack.ss_size = stack_bytes_;
  saved_.uc_link = nullptr;
  // makecontext passes ints only, so the pointer travels in halves.
  const auto self = reinterpret_cast<std::uint64_t>(this);
  const auto enter = [](unsigned high, unsigned low) { begin(reinterpret_cast<void*>((std::uint64_t{high} << 32) | low)); };
  makecontext(&saved_, reinterpret_cast<void (*)()>(static_cast<void (*)(unsigned, unsigned)>(enter)), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fibre::arrive(void*) noexcept {}

void Fibre::change(Fibre& from, Fibre& to) noexcept { swapcontext(&from.saved_, &to.saved_); }

#endif

void Fibre::begin(void* self) noexcept {
  arrive(nullptr);
  auto* fibre = static_cast<Fibre*>(self);
  fibre->entry_(fibre->argument_);
  std::abort();
}

#if defined(FREEHOLD_SIM_ASAN)
MayLeak::MayLeak() noexcept { __lsan_disable(); }
MayLeak::~MayLeak() { __lsan_enable(); }
#else
MayLeak::MayLeak() noexcept = default;
MayLeak::~MayLeak() = default;
#endif

}  // namespace freehold::sim
