// SPDX-License-Identifier: MIT
// Which malloc a test program runs with. The same program runs once preloaded, once linked and once with the system's
// malloc. Every test program checks at its start that Freehold's malloc is active where it is expected: otherwise the test
// would pass without testing Freehold. It is expected if LD_PRELOAD names libfreehold, or with FREEHOLD_TEST_LINKED at
// compile time.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace freehold::test {

// True if malloc in this process is Freehold's. Looked up by name: the same program also runs without Freehold.
inline bool freehold_answers() {
  using IsActive = int (*)();
  const auto is_active = reinterpret_cast<IsActive>(::dlsym(RTLD_DEFAULT, "freehold_is_active"));
  return is_active != nullptr && is_active() == 1;
}

inline bool freehold_is_expected() {
#if defined(FREEHOLD_TEST_LINKED)
  return true;
#else
  const char* preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "libfreehold") != nullptr;
#endif
}

}  // namespace freehold::test
