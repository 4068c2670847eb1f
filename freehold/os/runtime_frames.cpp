// SPDX-License-Identifier: MIT
#include "freehold/os/runtime_frames.hpp"

#if defined(__x86_64__)
#include <cstring>

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

// CPython's trampolines without a frame pointer are recognised by what is executed after the return: add $8,%rsp; ret. The
// code is the caller of a function that an unwinder has found, so it is there; it may be for execution only.
[[nodiscard]] bool is_plain_trampoline(std::uintptr_t code) noexcept {
  constexpr unsigned char kAdd[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
  if (code % kPageBytes > kPageBytes - kWordBytes || !is_readable(code)) return false;
  return std::memcmp(reinterpret_cast<const void*>(code), kAdd, sizeof kAdd) == 0;
}

[[nodiscard]] bool can_be_code(std::uintptr_t address) noexcept { return address >= kPageBytes && address < kUserEnd; }

// Steps to the caller whose stack pointer is `to`.
[[nodiscard]] bool step_to(std::uintptr_t to, FrameState& state, ReadableStack& stack) noexcept {
  if (!stack.has_frame(state.stack, to)) return false;
  const std::uintptr_t code = stack_word(to - kWordBytes);
  if (!can_be_code(code)) return false;
  state.code = code;
  state.stack = to;
  return true;
}

[[nodiscard]] bool step_over_trampoline(FrameState& state, ReadableStack& stack) noexcept {
  return is_plain_trampoline(state.code) && step_to(state.stack + 2 * kWordBytes, state, stack);
}

[[nodiscard]] bool step_by_frame_pointer(FrameState& state, ReadableStack& stack) noexcept {
  const std::uintptr_t frame = state.frame;
  if (frame < state.stack || !step_to(frame + 2 * kWordBytes, state, stack)) return false;
  state.frame = stack_word(frame);
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

RuntimeFrames::Way RuntimeFrames::step_out(FrameState& state, ReadableStack& stack, const Unwinder& by, void** addresses,
                                           unsigned room) noexcept {
  Way way;
  FrameState at = state;
  way.is_found = step_over_trampoline(at, stack);
  if (!way.is_found) way.is_found = way.is_guess = step_by_frame_pointer(at, stack);
  while (way.is_found && way.count != room && by.function_at(reinterpret_cast<void*>(at.code)) == nullptr) {
    addresses[way.count++] = reinterpret_cast<void*>(at.code - 1);
    way.is_found = way.is_guess = step_by_frame_pointer(at, stack);
  }
  if (!way.is_found) return {};
  state = at;
  return way;
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
RuntimeFrames::Way RuntimeFrames::step_out(FrameState&, ReadableStack&, const Unwinder&, void**, unsigned) noexcept {
  return {};
}
void RuntimeFrames::walk_from(const FrameState&, const Unwinder&, _Unwind_Trace_Fn, void*) noexcept {}

}  // namespace freehold::os
#endif
