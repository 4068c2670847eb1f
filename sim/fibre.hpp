// SPDX-License-Identifier: MIT
// A fibre: a separate stack that runs until it hands over. The simulated threads are fibres of one OS thread, so that the
// simulator alone decides which one runs. A switch must cost nanoseconds (an execution of a small scenario has dozens, and
// millions of executions are explored): on x86-64 it saves six registers and makes no system call; elsewhere ucontext. A
// fibre may be abandoned at any switch: start() begins a new life on the same stack; what the old life owned leaks.
#pragma once
#include <cstddef>
#if defined(__x86_64__)
#define FREEHOLD_SIM_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace freehold::sim {

class Fibre {
 public:
  // The fibre of the caller itself, which has a stack already.
  Fibre() noexcept = default;
  // Creates a fibre; below its stack lies a guard page.
  explicit Fibre(std::size_t stack_bytes);
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // The next switch to this fibre calls entry(argument), which must never return.
  void start(void (*entry)(void*), void* argument) noexcept;

  // Leaves the fibre `from`, which must be the running one, and continues `to`.
  static void change(Fibre& from, Fibre& to) noexcept;

 private:
  [[noreturn]] static void begin(void* self) noexcept;
  static void arrive(void* fake_stack) noexcept;

  std::byte* stack_ = nullptr;  // null: the caller's own, which is not ours to unmap
  std::size_t stack_bytes_ = 0;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
#if defined(FREEHOLD_SIM_OWN_SWITCH)
  void* saved_ = nullptr;  // the stack pointer, with the callee-saved registers above it
#else
  ucontext_t saved_{};
#endif
};

// While it lives, fibres may be abandoned: a leak checker overlooks what is allocated then.
class MayLeak {
 public:
  MayLeak() noexcept;
  ~MayLeak();
  MayLeak(const MayLeak&) = delete;
  MayLeak& operator=(const MayLeak&) = delete;
};

}  // namespace freehold::sim
