// SPDX-License-Identifier: MIT
// The plugin that uses heaps and timers.
#include "tests/plugin/heap_side.hpp"

extern "C" [[gnu::visibility("default")]] void plugin_side(freehold::test::HeapSide* side) {
  *side = freehold::test::this_heap_side();
}
