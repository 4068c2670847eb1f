// Which malloc answers in this process, for tests that run once preloaded, once linked and once with the system's malloc.
// A test that believes it tests Freehold and does not is worse than none: every program checks at its start
// that the door it was promised is the one that answers. The promise is LD_PRELOAD naming libfreehold, or
// FREEHOLD_TEST_LINKED at compile time.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace freehold::test {

// True if malloc in this process is Freehold's. Looked up by name: the same program also runs without Freehold.
inline bool door_is_active() {
  using IsActive = int (*)();
  const auto is_active = reinterpret_cast<IsActive>(::dlsym(RTLD_DEFAULT, "freehold_is_active"));
  return is_active != nullptr && is_active() == 1;
}

inline bool door_is_promised() {
#if defined(FREEHOLD_TEST_LINKED)
  return true;
#else
  const char* preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "libfreehold") != nullptr;
#endif
}

}  // namespace freehold::test
