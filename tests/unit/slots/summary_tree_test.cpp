// SPDX-License-Identifier: MIT
#include "freehold/slots/summary_tree.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

template <class A = sync::NativeAtomics>
struct Storage {
  using Tree = SummaryTree<A>;
  explicit Storage(std::size_t spans, std::size_t stride = 1, std::size_t offset = 0)
      : words(std::make_unique<typename Tree::Word[]>(Tree::words_for(spans) * stride)) {
    tree.attach(words.get() + offset, stride, spans);
  }
  std::unique_ptr<typename Tree::Word[]> words;
  Tree tree;
};
constexpr auto kEmpty = [] { return false; };
constexpr std::uint32_t kNone = SummaryTree<sync::NativeAtomics>::kNone;

TEST(SummaryTree, RandomOperations_AgreeWithASet) {
  std::mt19937 random(1);
  for (const std::uint32_t spans : {50U, 70U, 4096U, 20'000U}) {
    Storage<> s(spans);
    std::set<std::uint32_t> model;
    for (int step = 0; step < 20'000; ++step) {
      const std::uint32_t i = random() % spans;
      switch (random() % 4) {
        case 0:
          s.tree.set(i);
          model.insert(i);
          break;
        case 1:
          s.tree.retire(i, kEmpty);
          model.erase(i);
          break;
        case 2: ASSERT_EQ(s.tree.test(i), model.count(i) == 1); break;
        default: {
          const auto next = model.lower_bound(i);
          ASSERT_EQ(s.tree.find(i), next == model.end() ? kNone : *next);
        }
      }
      ASSERT_TRUE(step % 256 != 0 || s.tree.check_invariants());
    }
  }
}

}  // namespace
}  // namespace freehold::pool
