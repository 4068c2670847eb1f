// SPDX-License-Identifier: MIT
// For functions that cannot return an error: reports that memory is exhausted, by an exception, or in a program compiled
// without exceptions by one line on standard error and abort().
#pragma once
#include <new>

#include "freehold/base/check.hpp"

namespace freehold::base {

template <class Error = std::bad_alloc>
[[noreturn, gnu::cold, gnu::noinline]] void out_of_memory() {
#if defined(__cpp_exceptions)
  throw Error();
#else
  assertion_failed("memory for a pool or heap, in a program without exceptions", __FILE__, __LINE__);
#endif
}

}  // namespace freehold::base
