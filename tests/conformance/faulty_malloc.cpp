// SPDX-License-Identifier: MIT
// A malloc with one fault, chosen by FAULT: the tests are run under it and must fail, else they prove nothing. It passes
// everything on to glibc and goes wrong once in ten of the calls that can go wrong so, from the 300th of them on. Some
// traces have few of a kind: one of 200,000 steps may ask for less than 3000 blocks of 16 bytes.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;
}

namespace {

// True if the fault `name` is chosen and its turn has come.
bool turn_of(const char* name) {
  static const char* fault = nullptr;
  static std::atomic<unsigned> calls{0};
  if (fault == nullptr) {
    fault = std::getenv("FAULT");
    if (fault == nullptr) fault = "";
  }
  if (std::strcmp(fault, name) != 0) return false;
  const unsigned n = calls.fetch_add(1, std::memory_order_relaxed);
  return n > 300 && n % 10 == 0;
}

// The last block of 16 bytes, to be handed out again.
std::atomic<void*> g_shared{nullptr};

// Blocks that glibc must not see again.
bool is_spoilt(void* p) { return p == g_shared.load() || reinterpret_cast<std::uintptr_t>(p) % 16 != 0; }

}  // namespace

EXPORT void* malloc(std::size_t n) noexcept {
  if (n <= 16 && turn_of("twice")) {
    if (g_shared.load() == nullptr) g_shared = __libc_malloc(16);
    return g_shared;
  }
  if (turn_of("misaligned")) return static_cast<char*>(__libc_malloc(n + 16)) + 8;
  return __libc_malloc(n);
}
EXPORT void free(void* p) noexcept {
  if (!is_spoilt(p)) __libc_free(p);
}
EXPORT void* calloc(std::size_t n, std::size_t size) noexcept {
  void* p = __libc_calloc(n, size);
  if (p != nullptr && n * size > 100 && turn_of("dirty")) static_cast<char*>(p)[n * size / 2] = 1;
  return p;
}
EXPORT void* realloc(void* p, std::size_t n) noexcept {
  if (is_spoilt(p)) return __libc_malloc(n);
  const std::size_t old = malloc_usable_size(p);
  p = __libc_realloc(p, n);
  if (old > 100 && n > old && turn_of("loses")) static_cast<char*>(p)[old / 2] ^= 1;
  return p;
}
EXPORT void* memalign(std::size_t alignment, std::size_t n) noexcept {
  return turn_of("underaligned") ? __libc_malloc(n) : __libc_memalign(alignment, n);
}
