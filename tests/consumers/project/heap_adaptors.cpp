// SPDX-License-Identifier: MIT
// A program with arrays and handles in a private heap, and a second heap for what the first has no room for.
#include <cstdlib>

#include "freehold/heap.hpp"

namespace heap = freehold::heap;

struct Shape {
  virtual int corners() const = 0;

 protected:
  ~Shape() = default;
};
struct Square final : Shape {
  int corners() const override { return 4; }
};

int main() {
  heap::PrivateHeap small({.limit_bytes = 64 * 1024}), large;
  const auto numbers = heap::make_unique<int[]>(large, 100);
  heap::HeapPtr<Shape> shape = heap::make_unique<Square>(large);
  heap::FallbackHeap both(small, large);
  void* const block = both.allocate(1 << 20);
  both.deallocate(block);
  return numbers[99] == 0 && shape->corners() == 4 && block != nullptr ? EXIT_SUCCESS : EXIT_FAILURE;
}
