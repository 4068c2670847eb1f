// SPDX-License-Identifier: MIT
// A program that gives plain code a heap, counts what it allocates, and forbids it to allocate.
#include <cstdlib>
#include <string>

#include "freehold/count.hpp"
#include "freehold/heap_scope.hpp"

int main() {
  freehold::PrivateHeap heap({.name = "texts"});
  std::string text;
  const freehold::AllocationCounts counts = freehold::count_allocations([&] {
    const freehold::HeapScope scope(heap);
    text.assign(1000, 'x');
  });
  const bool is_of_heap = heap.stats().live_objects == 1;
  freehold::NoMalloc none(FREEHOLD_COUNT);
  text.clear();
  text.shrink_to_fit();  // a block that is freed is no offence
  const bool is_none = none.ok();
  freehold::NoMalloc broken(FREEHOLD_COUNT);
  text.assign(1000, 'x');
  return counts.allocations == 1 && is_of_heap && heap.stats().live_objects == 0 && is_none && !broken.ok() ? EXIT_SUCCESS
                                                                                                            : EXIT_FAILURE;
}
