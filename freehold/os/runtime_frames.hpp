// SPDX-License-Identifier: MIT
// Stack frames of code that a program made at run time: an interpreter's trampolines, a compiler's output. Such code has no
// unwind information, and a stack would end there. On x86-64 it goes on where the frame is one of CPython's trampolines, or
// keeps a frame pointer (System V ABI 3.2.2), up to the next function that has unwind information.
//
// A frame pointer may be any number: what it leads to is a guess, and so is all behind it. So the stack is read as
// readable_stack.hpp says from there on, and a chain that does not end at a function with unwind information is dropped
// whole. Any thread; async-signal-safe. Cost: a system call for each page of stack behind the first guess.
#pragma once
#include <unwind.h>

#include <cstddef>
#include <cstdint>

#include "freehold/os/readable_stack.hpp"

struct dl_find_object;  // libc's

namespace freehold::os {

// A frame's state: where its code is, and the registers that a function keeps for its caller.
struct FrameState {
  std::uintptr_t code, stack, frame, rbx, r12, r13, r14, r15;

  [[nodiscard]] bool operator==(const FrameState&) const noexcept = default;
};

// The unwinder's functions, which are looked up rather than linked.
struct Unwinder {
  decltype(&_Unwind_Backtrace) walk;
  decltype(&_Unwind_GetIPInfo) place;
  decltype(&_Unwind_GetCFA) stack;
  decltype(&_Unwind_GetGR) general;
  decltype(&_Unwind_FindEnclosingFunction) function_at;
  int (*find_object)(void*, struct dl_find_object*);  // libc's _dl_find_object
};

class RuntimeFrames {
 public:
  // Returns whether stacks can go on here: the machine is one of these, and the kernel tells which memory can be read.
  [[nodiscard]] static bool are_supported() noexcept;

  // The state of the function that this stands in.
  [[gnu::always_inline]] static inline FrameState state_here() noexcept;

  // The state of the frame that an unwinder visits.
  [[nodiscard]] static FrameState state_of(_Unwind_Context* context, std::uintptr_t code, const Unwinder& by) noexcept;

  struct Way {
    unsigned count = 0;  // number of addresses that were written
    bool is_found = false, is_guess = false;
  };
  // Steps from code without unwind information out to a function that has it. Writes the addresses of the calls on the way
  // but the first one, which is known, to `addresses`, at most `room`; each lies in the call. The state is then that
  // function's, or that of the last one that there was room for. Not found: the frames are of no kind that is known, and
  // nothing is written. A guess: by a frame pointer; what CPython's trampolines lead to is none. Pre: are_supported(); the
  // stack begins at the state, or at a guess before it.
  [[nodiscard]] static Way step_out(FrameState& state, ReadableStack& stack, const Unwinder& by, void** addresses,
                                    unsigned room) noexcept;

  // Begins a walk at a state, which is the second frame that `visit` sees; the first is a function of this file.
  static void walk_from(const FrameState& state, const Unwinder& by, _Unwind_Trace_Fn visit, void* argument) noexcept;
};

inline FrameState RuntimeFrames::state_here() noexcept {
  FrameState state{};
#if defined(__x86_64__)
  asm volatile(
      "leaq 1f(%%rip), %%rax\n movq %%rax, (%0)\n movq %%rsp, 8(%0)\n movq %%rbp, 16(%0)\n movq %%rbx, 24(%0)\n"
      "movq %%r12, 32(%0)\n movq %%r13, 40(%0)\n movq %%r14, 48(%0)\n movq %%r15, 56(%0)\n 1:"
      :
      : "r"(&state)
      : "rax", "memory");
#endif
  return state;
}

}  // namespace freehold::os
