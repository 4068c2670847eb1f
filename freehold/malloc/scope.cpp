// SPDX-License-Identifier: MIT
// Private heaps ask these of the engine that serves malloc.
#include "freehold/alloc/scope/scope.hpp"
#include "freehold/malloc/export.hpp"

extern "C" FREEHOLD_EXPORT const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept {
  return &freehold::alloc::kScopeEngine;
}
