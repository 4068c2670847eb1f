// SPDX-License-Identifier: MIT
// A program that compares the pools of pool_strategies.hpp, and makes one of several.
#include <cstdlib>
#include <thread>

#include "freehold/pool_strategies.hpp"

namespace {

using namespace freehold::pool;

// All slots can be had, no more, and all of them again after another thread released them.
template <class P>
bool hands_out_all() {
  P pool({.slots = 3, .slot_bytes = 40, .shards = 1});
  for (int round = 0; round < 2; ++round) {
    void* slots[4];
    for (void*& slot : slots) slot = pool.acquire();
    if (slots[2] == nullptr || slots[3] != nullptr) return false;
    std::thread([&] {
      for (int i = 0; i < 3; ++i) pool.release(slots[i]);
    }).join();
  }
  return true;
}

template <class... S>
bool all_hand_out_all() {
  return (hands_out_all<NativePool<S>>() && ...);
}

}  // namespace

int main() {
  using Array = Distributed<NativePool<LockedFlags>, ByThread<freehold::sync::NativeAtomics>, Fail>;
  freehold::ObjectPool<int, NativePool<StacksByCpu>> numbers(4);
  ArrayOfPools<int, 4, 2> array;
  const std::size_t mine = array.get_pool_index();
  int* const entry = array.pop(mine);
  array.push(entry, mine);
  return all_hand_out_all<StacksByThread, StacksByHash, StacksByCpu, RoamingStacksByThread, RoamingStacksByCpu,
                          LockFreeFlags, LockedFlags, SpinLockedFlags, TicketLockedFlags, LockFreeBits, LockedBits,
                          LockedBits32, LockFreeBitmapTree, LockedBitmapTree, LockedBitmapTree32, HazardStack>() &&
                 hands_out_all<Array>() && *numbers.make(7) == 7 && array.pop(mine) == entry
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}
