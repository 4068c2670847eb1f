// SPDX-License-Identifier: MIT
#include "freehold/os/runtime_frames.hpp"

#if defined(__x86_64__)
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/base/keep_errno.hpp"

// void freehold_walk_from(walk, visit, argument, state): calls walk(visit, argument), and says by its unwind information
// that its caller is the frame of `state`. rbx holds the state, so that the rules below find each register in it: the
// canonical frame address is the state's stack pointer (DW_CFA_def_cfa_expression), the others lie at their members' places
// (DW_CFA_expression; 16 is the return address).
extern "C" void freehold_walk_from(decltype(&_Unwind_Backtrace) walk, _Unwind_Trace_Fn visit, void* argument,
                                   const freehold::os::FrameState* state) noexcept;
asm(R"(
  .pushsection .text
  .globl freehold_walk_from
  .hidden freehold_walk_from
  .type freehold_walk_from, @function
freehold_walk_from:
  .cfi_startproc
  endbr64
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rbx
  .cfi_remember_state
  .cfi_escape 0x0f, 3, 0x73, 8, 0x06
  .cfi_escape 0x10, 16, 2, 0x73, 0
  .cfi_escape 0x10, 6, 2, 0x73, 16
  .cfi_escape 0x10, 3, 2, 0x73, 24
  .cfi_escape 0x10, 12, 2, 0x73, 32
  .cfi_escape 0x10, 13, 2, 0x73, 40
  .cfi_escape 0x10, 14, 2, 0x73, 48
  .cfi_escape 0x10, 15, 2, 0x73, 56
  call *%rax
  .cfi_restore_state
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size freehold_walk_from, .-freehold_walk_from
  .popsection
)");

namespace freehold::os {
namespace {

static_assert(offsetof(FrameState, code) == 0 && offsetof(FrameState, stack) == 8 && offsetof(FrameState, frame) == 16 &&
                  offsetof(FrameState, rbx) == 24 && offsetof(FrameState, r12) == 32 && offsetof(FrameState, r15) == 56,
              "freehold_walk_from has these places");

constexpr std::size_t kPageBytes = 4096, kWordBytes = sizeof(std::uintptr_t);
constexpr std::uintptr_t kUserEnd = std::uintptr_t{1} << 47;  // what is above is never code of a program

// Whether the word can be read. The kernel reads it as a set of signals, for an operation that does not exist: nothing is
// changed. (Abseil's AddressIsReadable asks so, too.)
[[nodiscard]] bool is_readable(std::uintptr_t address) noexcept {
  constexpr int kNoOperation = ~0;
  const base::KeepErrno keep;
  return ::syscall(SYS_rt_sigprocmask, kNoOperation, address, nullptr, kWordBytes) != 0 && errno == EINVAL;
}

[[nodiscard]] std::uintptr_t word_at(std::uintptr_t address) noexcept {
  std::uintptr_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

// The thread's stack, from a stack pointer up, as far as all of it can be read.
class ReadableStack {
 public:
  explicit ReadableStack(std::uintptr_t stack) noexcept : end_(base::align_down(stack, kPageBytes)) {}
  // Pre: `end` is at most kMostFrameBytes and a word beyond what was asked for before.
  [[nodiscard]] bool reaches(std::uintptr_t end) noexcept {
    while (end_ < end) {
      if (!is_readable(end_)) return false;
      end_ += kPageBytes;
    }
    return true;
  }

 private:
  std::uintptr_t end_;
};

// CPython's trampolines without a frame pointer are told by what is executed after the return: add $8,%rsp; ret. The code is
// the caller of a function that an unwinder has found, so it is there; it may be for execution only.
[[nodiscard]] bool is_plain_trampoline(std::uintptr_t code) noexcept {
  constexpr unsigned char kAdd[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
  if (code % kPageBytes > kPageBytes - kWordBytes || !is_readable(code)) return false;
  return std::memcmp(reinterpret_cast<const void*>(code), kAdd, sizeof kAdd) == 0;
}

[[nodiscard]] bool can_be_code(std::uintptr_t address) noexcept { return address >= kPageBytes && address < kUserEnd; }

[[nodiscard]] bool step_over_trampoline(FrameState& state, ReadableStack& stack) noexcept {
  if (!is_plain_trampoline(state.code) || !stack.reaches(state.stack + 2 * kWordBytes)) return false;
  const std::uintptr_t code = word_at(state.stack + kWordBytes);
  if (!can_be_code(code)) return false;
  state.code = code;
  state.stack += 2 * kWordBytes;
  return true;
}

[[nodiscard]] bool step_by_frame_pointer(FrameState& state, ReadableStack& stack) noexcept {
  const std::uintptr_t frame = state.frame;
  if (frame < state.stack || frame - state.stack > RuntimeFrames::kMostFrameBytes || frame % kWordBytes != 0) return false;
  if (!stack.reaches(frame + 2 * kWordBytes)) return false;
  const std::uintptr_t code = word_at(frame + kWordBytes);
  if (!can_be_code(code)) return false;
  state.code = code;
  state.frame = word_at(frame);
  state.stack = frame + 2 * kWordBytes;
  return true;
}

}  // namespace

bool RuntimeFrames::are_supported() noexcept {
  const std::uintptr_t here = 0;
  return is_readable(reinterpret_cast<std::uintptr_t>(&here)) && !is_readable(kUserEnd);
}

FrameState RuntimeFrames::state_of(_Unwind_Context* context, std::uintptr_t code, const Unwinder& by) noexcept {
  constexpr int kRbx = 3, kRbp = 6, kR12 = 12, kR13 = 13, kR14 = 14, kR15 = 15;  // by the ABI's numbers
  return {.code = code,
          .stack = by.stack(context),
          .frame = by.general(context, kRbp),
          .rbx = by.general(context, kRbx),
          .r12 = by.general(context, kR12),
          .r13 = by.general(context, kR13),
          .r14 = by.general(context, kR14),
          .r15 = by.general(context, kR15)};
}

unsigned RuntimeFrames::step_out(FrameState& state, const Unwinder& by, void** addresses, unsigned room,
                                 bool& found) noexcept {
  ReadableStack stack(state.stack);
  FrameState at = state;
  unsigned count = 0;
  found = step_over_trampoline(at, stack) || step_by_frame_pointer(at, stack);
  while (found && count != room && by.function_at(reinterpret_cast<void*>(at.code)) == nullptr) {
    addresses[count++] = reinterpret_cast<void*>(at.code - 1);
    found = step_by_frame_pointer(at, stack);
  }
  if (!found) return 0;
  state = at;
  return count;
}

void RuntimeFrames::walk_from(const FrameState& state, const Unwinder& by, _Unwind_Trace_Fn visit, void* argument) noexcept {
  freehold_walk_from(by.walk, visit, argument, &state);
}

}  // namespace freehold::os

#else

namespace freehold::os {

// Their stacks end at such code.
bool RuntimeFrames::are_supported() noexcept { return false; }
FrameState RuntimeFrames::state_of(_Unwind_Context*, std::uintptr_t, const Unwinder&) noexcept { return {}; }
unsigned RuntimeFrames::step_out(FrameState&, const Unwinder&, void**, unsigned, bool& found) noexcept {
  found = false;
  return 0;
}
void RuntimeFrames::walk_from(const FrameState&, const Unwinder&, _Unwind_Trace_Fn, void*) noexcept {}

}  // namespace freehold::os
#endif
