// SPDX-License-Identifier: MIT
// NodeArray: what a thread may look at while another one creates a timer.
#include "freehold/timer/node_array.hpp"
#include "freehold/timer/locking.hpp"
#include "tests/support/test.hpp"

namespace freehold::timer {
namespace {

struct Node;
const NodeArray<Node, AnyThread>* g_nodes = nullptr;

// Remembers how many nodes others may look at while it is constructed.
struct Node {
  Node() noexcept;
  [[nodiscard]] std::uint32_t get_next() const noexcept { return next; }
  void set_next(std::uint32_t to) noexcept { next = to; }
  std::uint32_t next = kNoNode;
  std::uint32_t used_before;
  std::byte payload[56];
};
Node::Node() noexcept : used_before(g_nodes->used()) {}

TEST(NodeArray, NodeIsMade_BeforeOthersMayLookAtIt) {
  NodeArray<Node, AnyThread> nodes(10'000);
  g_nodes = &nodes;
  for (std::uint32_t i = 0; i < 10'000; ++i) {  // the memory grows a few times
    ASSERT_EQ(nodes.allocate(), i);
    ASSERT_EQ(nodes[i].used_before, i);
    ASSERT_EQ(nodes.used(), i + 1);
  }
  EXPECT_EQ(nodes.allocate(), kNoNode);
}

}  // namespace
}  // namespace freehold::timer
