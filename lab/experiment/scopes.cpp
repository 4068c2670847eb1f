// SPDX-License-Identifier: MIT
// The laboratory's own malloc is the system's, and has no scopes. A worker under Freehold's finds that one's.
#include <dlfcn.h>

#include "freehold/alloc/scope/scope.hpp"

extern "C" const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept {
  static const freehold::alloc::ScopeEngine* const engine = [] {
    void* const found = ::dlsym(RTLD_NEXT, "freehold_scope_engine");
    return found == nullptr ? nullptr : reinterpret_cast<decltype(&freehold_scope_engine)>(found)();
  }();
  return engine;
}
