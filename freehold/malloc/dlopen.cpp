// SPDX-License-Identifier: MIT
// libc's dlopen, without RTLD_DEEPBIND: a plugin that is opened by it would call libc's malloc and free while the program
// calls ours, and the first block that crosses ends the program (PHP and its pdo.so). Part of libfreehold.so alone.
//
// libc looks for the library where the caller's RUNPATH says, and knows the caller by the return address: so this jumps, and
// is no function that calls.
#include <dlfcn.h>

#include "freehold/malloc/export.hpp"

#if defined(RTLD_DEEPBIND)  // musl has none
static_assert(RTLD_DEEPBIND == 8);

extern "C" {
// Null: not looked for yet. Every thread finds the same.
[[gnu::visibility("hidden"), gnu::used]] void* freehold_libc_dlopen = nullptr;
[[gnu::visibility("hidden"), gnu::used]] void* freehold_find_dlopen() noexcept {
  void* const found = ::dlsym(RTLD_NEXT, "dlopen");
  __atomic_store_n(&freehold_libc_dlopen, found, __ATOMIC_RELAXED);
  return found;
}
}

// clang-format off
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  .cfi_startproc
  endbr64
  andl $~8, %esi
  movq freehold_libc_dlopen(%rip), %rax
  testq %rax, %rax
  jnz 1f
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call freehold_find_dlopen
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
1:
  jmp *%rax
  .cfi_endproc
  .size dlopen, . - dlopen
  .popsection
)");
#elif defined(__aarch64__)
asm(R"(
  .pushsection .text
  .globl dlopen
  .type dlopen, %function
dlopen:
  .cfi_startproc
  hint #34
  and w1, w1, #0xfffffff7
  adrp x16, freehold_libc_dlopen
  ldr x16, [x16, :lo12:freehold_libc_dlopen]
  cbnz x16, 1f
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset x29, -32
  .cfi_offset x30, -24
  stp x0, x1, [sp, #16]
  bl freehold_find_dlopen
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore x30
  .cfi_restore x29
  .cfi_def_cfa_offset 0
1:
  br x16
  .cfi_endproc
  .size dlopen, . - dlopen
  .popsection
)");
#else
extern "C" FREEHOLD_EXPORT void* dlopen(const char* file, int mode) noexcept {
  void* const real = freehold_libc_dlopen != nullptr ? freehold_libc_dlopen : freehold_find_dlopen();
  return reinterpret_cast<void* (*)(const char*, int)>(real)(file, mode & ~RTLD_DEEPBIND);
}
#endif
// clang-format on

#endif
