// SPDX-License-Identifier: MIT
// The plugin that uses pools.
#include "tests/plugin/pool_side.hpp"

extern "C" [[gnu::visibility("default")]] void plugin_side(freehold::test::PoolSide* side) {
  *side = freehold::test::this_pool_side();
}
