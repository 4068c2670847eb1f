// SPDX-License-Identifier: MIT
// A program with containers in a private heap.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "freehold/heap.hpp"

namespace heap = freehold::heap;

int main() {
  heap::PrivateHeap heap;
  using Allocator = heap::HeapAllocator<std::pair<const int, int>>;
  std::map<int, int, std::less<>, Allocator> map{Allocator(heap)};
  for (int i = 0; i < 1000; ++i) map[i] = i;
  heap::HeapResource resource(heap);
  std::pmr::vector<std::pmr::string> words(10, "a string that is too long to lie within itself", &resource);
  const auto number = heap::make_unique<int>(heap, 7);
  return map.at(999) == 999 && words[9].size() > 20 && *number == 7 && heap.stats().live_objects == 1012 ? EXIT_SUCCESS
                                                                                                         : EXIT_FAILURE;
}
