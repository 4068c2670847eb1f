// SPDX-License-Identifier: MIT
// A user's program under AddressSanitizer: a pool's slots, some of which their user has poisoned in part when they
// come back, and in the end one that comes back twice.
//
//   pool innocent|release_twice POOL
#include <sanitizer/asan_interface.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "freehold/pool.hpp"

namespace {

template <class Pool>
int use(bool releases_twice) {
  constexpr unsigned kSlots = 200;
  Pool pool({.slots = kSlots, .slot_bytes = 32});
  std::vector<void*> slots;
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < kSlots; ++i) {
      slots.push_back(pool.acquire());
      static_cast<volatile char*>(slots.back())[31] = 1;
    }
    for (unsigned i = 0; i < kSlots; ++i) {
      if (i % 3 == 0) ASAN_POISON_MEMORY_REGION(slots[i], 8);
      pool.release(slots[i]);
    }
    if (releases_twice) pool.release(slots[kSlots / 2]);
    slots.clear();
  }
  std::puts("not seen");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string_view name = words[2];
  const bool releases_twice = std::string_view(words[1]) == "release_twice";
  int result = 2;
  if (name == "best") result = use<freehold::pool::NativePool<freehold::pool::Best>>(releases_twice);
  if (name == "tagged-stack") result = use<freehold::pool::NativePool<freehold::pool::TaggedStack>>(releases_twice);
  if (name == "single-thread") result = use<freehold::SingleThreadPool>(releases_twice);
  return result;
}
