// SPDX-License-Identifier: MIT
// The libraries beside malloc work, and leave malloc alone.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "freehold/heap.hpp"
#include "freehold/pool.hpp"

namespace {

// The file of the malloc that this program calls.
bool malloc_is_libcs() {
  void* (*volatile allocate)(std::size_t) = std::malloc;
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(allocate), &info) != 0 && std::strstr(info.dli_fname, "libc.so") != nullptr;
}

bool heap_works() {
  freehold::PrivateHeap heap;
  void* const block = heap.allocate(100);
  std::memset(block, 1, 100);
  const auto live = heap.stats().live_objects;
  heap.deallocate(block);
  return live == 1 && heap.stats().live_objects == 0;
}

bool pool_works() {
  freehold::ObjectPool<int> pool(100);
  const auto one = pool.make(1);
  const auto two = pool.make(2);
  return one && two && *one + *two == 3;
}

}  // namespace

int main() {
  if (!malloc_is_libcs()) return std::puts("malloc is not libc's, though this program has not asked for another"), 1;
  if (!heap_works() || !pool_works()) return std::puts("a library does not work"), 1;
  std::puts("libraries work, malloc is libc's");
}
