// SPDX-License-Identifier: MIT
// Allocates through a function that has no unwind information, as V8's built-in functions have none, in a file that has much
// of it: 300'000 entries.
//   without_entry          through that function
//   without_entry known    through one that has an entry
#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)
#error the function is in assembly for x86-64
#endif

asm(".text\n"
    ".rept 300000\n"
    ".cfi_startproc\n"
    "nop\n"
    ".cfi_endproc\n"
    ".endr\n"
    ".globl call_unknown\n"
    "call_unknown:\n"
    "sub $40, %rsp\n"  // not as a trampoline of CPython's does, over which the probe steps
    "call *%rdi\n"
    "add $40, %rsp\n"
    "ret\n"
    ".globl call_known\n"
    "call_known:\n"
    ".cfi_startproc\n"
    "sub $40, %rsp\n"
    ".cfi_def_cfa_offset 48\n"
    "call *%rdi\n"
    "add $40, %rsp\n"
    ".cfi_def_cfa_offset 8\n"
    "ret\n"
    ".cfi_endproc\n");
void call_unknown(void (*function)(void));
void call_known(void (*function)(void));

__attribute__((noinline)) static void allocate_here(void) {
  void* volatile block = malloc(100);
  free(block);
}

int main(int argc, char** argv) {
  (void)argv;
  for (int i = 0; i < 1000000; ++i) (argc == 2 ? call_known : call_unknown)(allocate_here);
  puts("ok");
  return 0;
}
