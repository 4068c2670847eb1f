// SPDX-License-Identifier: MIT
#include "freehold/os/rseq.hpp"

#include "freehold/os/futex.hpp"

// ThreadSanitizer does not see that what one CPU runs is ordered, and would take every slot handed on for a race.
#if defined(__SANITIZE_THREAD__)
#define FREEHOLD_NO_SEQUENCES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FREEHOLD_NO_SEQUENCES
#endif
#endif

namespace freehold::os {

unsigned cpu_number() noexcept { return current_cpu(); }

#if defined(__x86_64__) && !defined(FREEHOLD_NO_SEQUENCES)

namespace {

struct rseq* area() noexcept {
  return reinterpret_cast<struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
}

// A descriptor of the sequence between labels 1 and 2 with the abort handler 4, which starts over at 5. The bytes before
// label 4 are the signature that the kernel looks for.
#define FREEHOLD_RSEQ_BEGIN             \
  ".pushsection __rseq_cs, \"aw\"\n\t"  \
  ".balign 32\n\t"                      \
  "3:\n\t"                              \
  ".long 0, 0\n\t"                      \
  ".quad 1f, 2f - 1f, 4f\n\t"           \
  ".popsection\n\t"                     \
  "5:\n\t"                              \
  "leaq 3b(%%rip), %[stack]\n\t"        \
  "movq %[stack], %%fs:8(%[rseq])\n\t"  \
  "1:\n\t"                              \
  "movl %%fs:4(%[rseq]), %k[stack]\n\t" \
  "shlq %[shift], %[stack]\n\t"         \
  "addq %[first], %[stack]\n\t"
#define FREEHOLD_RSEQ_END                   \
  "2:\n\t"                                  \
  ".pushsection __rseq_failure, \"ax\"\n\t" \
  ".byte 0x0f, 0xb9, 0x3d\n\t"              \
  ".long 0x53053053\n\t"                    \
  "4:\n\t"                                  \
  "jmp 5b\n\t"                              \
  ".popsection\n\t"

}  // namespace

bool rseq_available() noexcept {
  return &__rseq_size != nullptr && __rseq_size != 0 && static_cast<std::int32_t>(area()->cpu_id) >= 0;
}

unsigned rseq_cpu() noexcept { return area()->cpu_id_start; }

void* rseq_pop(CpuStack* stack) noexcept {
  void* mine;
  void* top;
  void* pointer;
  asm volatile(FREEHOLD_RSEQ_BEGIN
               "movq (%[stack]), %[top]\n\t"
               "movq -8(%[top]), %[pointer]\n\t"
               "testq %[pointer], %[pointer]\n\t"
               "jz 2f\n\t"
               "leaq -8(%[top]), %[top]\n\t"
               "movq %[top], (%[stack])\n\t" FREEHOLD_RSEQ_END
               : [stack] "=&r"(mine), [top] "=&r"(top), [pointer] "=&r"(pointer)
               : [rseq] "r"(__rseq_offset), [first] "r"(stack), [shift] "i"(kCpuShift)
               : "memory", "cc");
  return pointer;
}

bool rseq_push(CpuStack* stack, void* pointer) noexcept {
  void* mine;
  void* top;
  bool full;
  asm volatile(FREEHOLD_RSEQ_BEGIN
               "movq (%[stack]), %[top]\n\t"
               "cmpq 8(%[stack]), %[top]\n\t"
               "sete %[full]\n\t"
               "je 2f\n\t"
               "movq %[pointer], (%[top])\n\t"
               "leaq 8(%[top]), %[top]\n\t"
               "movq %[top], (%[stack])\n\t" FREEHOLD_RSEQ_END
               : [stack] "=&r"(mine), [top] "=&r"(top), [full] "=&q"(full)
               : [rseq] "r"(__rseq_offset), [first] "r"(stack), [pointer] "r"(pointer), [shift] "i"(kCpuShift)
               : "memory", "cc");
  return !full;
}

#else

bool rseq_available() noexcept { return false; }
unsigned rseq_cpu() noexcept { return 0; }
void* rseq_pop(CpuStack*) noexcept { return nullptr; }
bool rseq_push(CpuStack*, void*) noexcept { return false; }

#endif

}  // namespace freehold::os
