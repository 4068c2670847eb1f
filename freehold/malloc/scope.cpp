// SPDX-License-Identifier: MIT
// What private heaps ask of the engine that serves malloc.
#include "freehold/alloc/scope/scope.hpp"
#include "freehold/malloc/export.hpp"

extern "C" FREEHOLD_EXPORT const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept {
  return &freehold::alloc::kScopeEngine;
}
