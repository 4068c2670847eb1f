// SPDX-License-Identifier: MIT
// Client requests: valgrind knows an instruction sequence that does nothing on the processor (rotations by 128 in all, and a
// register that is exchanged with itself), and runs the request that a register points to: its code, and five arguments.
// Codes and sequence are valgrind's interface to programs (valgrind.h, memcheck.h), the same since 3.6 and on arm64
// since 3.9. They stand here so that what is built is the same whether the building machine has valgrind's headers or not.
#include "freehold/base/poison.hpp"

#include <cstdint>

namespace freehold::base {
namespace {

enum class Request : std::uintptr_t {
  kRunningOnValgrind = 0x1001,
  kMallocLikeBlock = 0x1301,
  kFreeLikeBlock,
  kCreatePool,
  kDestroyPool,
  kPoolAllocate,
  kPoolFree,
  kMakeNoAccess = std::uintptr_t{'M'} << 24 | std::uintptr_t{'C'} << 16,
  kMakeUndefined,
  kMakeDefined,
};

// Valgrind's answer; 0 without it.
std::uintptr_t ask(Request request, const void* first = nullptr, std::uintptr_t second = 0,
                   std::uintptr_t third = 0) noexcept {
  const std::uintptr_t arguments[] = {
      static_cast<std::uintptr_t>(request), reinterpret_cast<std::uintptr_t>(first), second, third, 0, 0};
#if defined(__x86_64__)
  std::uintptr_t answer = 0;  // rdx
  asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
               : "+d"(answer)
               : "a"(arguments)
               : "cc", "memory");
  return answer;
#elif defined(__aarch64__)
  register std::uintptr_t answer asm("x3") = 0;
  register const std::uintptr_t* where asm("x4") = arguments;
  asm volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
               : "+r"(answer)
               : "r"(where)
               : "cc", "memory");
  return answer;
#else
  static_cast<void>(arguments);
  return 0;
#endif
}
std::uintptr_t address(const void* of) noexcept { return reinterpret_cast<std::uintptr_t>(of); }

}  // namespace

bool under_memcheck() noexcept { return ask(Request::kRunningOnValgrind) != 0; }
void memcheck_on_allocate(const void* start, std::size_t bytes) noexcept { ask(Request::kMallocLikeBlock, start, bytes); }
void memcheck_on_free(const void* start) noexcept { ask(Request::kFreeLikeBlock, start); }
void memcheck_poison(const void* start, std::size_t bytes) noexcept { ask(Request::kMakeNoAccess, start, bytes); }
void memcheck_unpoison(const void* start, std::size_t bytes) noexcept { ask(Request::kMakeUndefined, start, bytes); }
void memcheck_define(const void* start, std::size_t bytes) noexcept { ask(Request::kMakeDefined, start, bytes); }
void memcheck_create_heap(const void* heap) noexcept { ask(Request::kCreatePool, heap); }
void memcheck_destroy_heap(const void* heap) noexcept { ask(Request::kDestroyPool, heap); }
void memcheck_on_allocate_in(const void* heap, const void* start, std::size_t bytes) noexcept {
  ask(Request::kPoolAllocate, heap, address(start), bytes);
}
void memcheck_on_free_in(const void* heap, const void* start) noexcept { ask(Request::kPoolFree, heap, address(start)); }

}  // namespace freehold::base
