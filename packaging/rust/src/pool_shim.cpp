// SPDX-License-Identifier: MIT
// Pools as C functions for the crate's feature `pools`, which links a C++ runtime. Errors: null. Threads: any.
#include <cstddef>
#include <new>

#include "freehold/pool/best_pool.hpp"

namespace pool = freehold::pool;
using Pool = pool::NativePool<pool::Best>;

extern "C" {

void* freehold_rust_pool_create(std::size_t slots, std::size_t bytes, std::size_t alignment) noexcept {
  pool::PoolShape shape;
  shape.slots = slots;
  shape.slot_bytes = bytes;
  shape.alignment = alignment;
  try {
    return new Pool(shape, pool::Growth::kGrowing);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void freehold_rust_pool_destroy(void* of) noexcept { delete static_cast<Pool*>(of); }
void* freehold_rust_pool_acquire(void* of) noexcept { return static_cast<Pool*>(of)->acquire(); }
void freehold_rust_pool_release(void* of, void* slot) noexcept { static_cast<Pool*>(of)->release(slot); }

}  // extern "C"
