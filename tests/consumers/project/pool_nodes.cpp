// SPDX-License-Identifier: MIT
// A program whose containers take their nodes from pools, and a pool that knows its objects.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory_resource>
#include <unordered_set>

#include "freehold/pool.hpp"

int main() {
  freehold::pool::NodePools<> pools(10'000);
  std::map<int, int, std::less<>, freehold::PoolAllocator<std::pair<const int, int>>> map{pools};
  for (int i = 0; i < 1000; ++i) map[i] = i;
  freehold::PoolResource resource(pools);
  std::pmr::unordered_set<int> set(&resource);
  set.insert(7);
  freehold::TrackedPool<int> tracked(100);
  auto handle = tracked.make(5);
  return map.at(999) == 999 && set.count(7) == 1 && tracked.live() == 1 && *handle == 5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
