// SPDX-License-Identifier: MIT
// Helpers of the kinds of misuse of malloc. Every access is volatile, and every pointer is one of which the compiler
// knows nothing: it must not see that what follows is wrong.
#pragma once
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/misuse/kinds.hpp"
#include "tests/support/c_api.hpp"

namespace freehold::test {

inline constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
inline constexpr std::size_t kSmall = 100, kMiddle = 20'000, kLarge = 200 * kKiB;

// A pointer that has nothing to do with its operand, for the compiler.
inline char* another(void* p) { return opaque(static_cast<char*>(p)); }

inline void release(void* p) { CApi::deallocate(p); }

inline char* block_of(std::size_t n) {
  auto* const p = static_cast<char*>(CApi::allocate(n));
  std::memset(p, 1, n);
  return another(p);
}

inline void write(char* p, char value = 0x41) { *static_cast<volatile char*>(another(p)) = value; }
inline char read(char* p) { return *static_cast<volatile char*>(another(p)); }

// Frees 64 MiB, which is more than a quarantine holds. The blocks have another size than the misused one, so that it is not
// handed out again, or the same size, so that it is.
inline void flush(std::size_t n) {
  for (std::size_t freed = 0; freed < 64 * kMiB; freed += n) release(CApi::allocate(n));
}

// Asks the allocator to look at all blocks now.
inline void check_on_demand() { needed<int()>("freehold_check_all")(); }

Kinds double_frees();
Kinds bad_pointers();
Kinds wrong_sizes();
Kinds mixed_families();
Kinds overflows();
Kinds underflows();
Kinds uses_after_free();
Kinds leaks_and_contents();
Kinds legal_calls();
Kinds legal_cxx();

}  // namespace freehold::test
