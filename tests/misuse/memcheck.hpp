// SPDX-License-Identifier: MIT
// For programs under valgrind that ask memcheck about every access.
#pragma once
#include <valgrind/memcheck.h>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {

// Reads, and tells whether memcheck complained.
inline bool is_reported(const volatile char* address) {
  const unsigned before = VALGRIND_COUNT_ERRORS;
  [[maybe_unused]] const volatile char read = *address;
  return VALGRIND_COUNT_ERRORS > before;
}

}  // namespace freehold::test
