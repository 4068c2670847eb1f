// SPDX-License-Identifier: MIT
// A pool's get and put as functions of their own, whose code script/check_fast_paths reads.
#include "freehold/pool.hpp"

using freehold::pool::NativePool;

extern "C" {
__attribute__((visibility("default"))) void* freehold_pool_get(NativePool<freehold::pool::Best>& pool) {
  return pool.acquire();
}
__attribute__((visibility("default"))) void freehold_pool_put(NativePool<freehold::pool::Best>& pool, void* slot) {
  pool.release(slot);
}
}
