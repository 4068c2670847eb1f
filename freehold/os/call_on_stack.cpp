// SPDX-License-Identifier: MIT
#include "freehold/os/call_on_stack.hpp"

// A frame that is found by the frame pointer, which the call preserves; so the unwinder does not miss the stack pointer.
// clang-format off
#if defined(__x86_64__)
extern "C" [[gnu::visibility("hidden")]] void freehold_call_on_stack(void* end, void (*function)(void*), void* argument);
asm(R"(
  .pushsection .text
  .globl freehold_call_on_stack
  .hidden freehold_call_on_stack
  .type freehold_call_on_stack, @function
freehold_call_on_stack:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rdi, %rsp
  movq %rdx, %rdi
  callq *%rsi
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size freehold_call_on_stack, . - freehold_call_on_stack
  .popsection
)");
#elif defined(__aarch64__)
extern "C" [[gnu::visibility("hidden")]] void freehold_call_on_stack(void* end, void (*function)(void*), void* argument);
asm(R"(
  .pushsection .text
  .globl freehold_call_on_stack
  .hidden freehold_call_on_stack
  .type freehold_call_on_stack, %function
freehold_call_on_stack:
  .cfi_startproc
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  mov sp, x0
  mov x0, x2
  blr x1
  mov sp, x29
  .cfi_def_cfa_register sp
  ldp x29, x30, [sp], #16
  .cfi_restore x30
  .cfi_restore x29
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size freehold_call_on_stack, . - freehold_call_on_stack
  .popsection
)");
#else
namespace {
void freehold_call_on_stack(void*, void (*function)(void*), void* argument) { function(argument); }
}
#endif
// clang-format on

namespace freehold::os {

void call_on_stack(void* end, void (*function)(void*), void* argument) noexcept {
  freehold_call_on_stack(end, function, argument);
}

}  // namespace freehold::os
