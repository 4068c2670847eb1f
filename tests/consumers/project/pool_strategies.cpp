// SPDX-License-Identifier: MIT
// A program that compares the pools' strategies: an object from a pool of each.
#include <cstdlib>

#include "freehold/pool.hpp"

int main() {
  unsigned strategies = 0, made = 0;
  freehold::pool::for_each_strategy([&]<class Strategy>() {
    freehold::ObjectPool<int, freehold::pool::NativePool<Strategy>> pool(8);
    ++strategies;
    const auto number = pool.make(7);
    made += number != nullptr && *number == 7;
  });
  return strategies > 10 && made == strategies ? EXIT_SUCCESS : EXIT_FAILURE;
}
