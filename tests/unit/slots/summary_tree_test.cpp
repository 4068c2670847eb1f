// SPDX-License-Identifier: MIT
#include "freehold/slots/summary_tree.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

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

TEST(SummaryTree, CheckPath_OnlyWhatIsFoundFromTheTop) {
  Storage<> s(79 * 64);
  s.tree.set(70);
  EXPECT_TRUE(s.tree.check_path(70));
  EXPECT_FALSE(s.tree.check_path(71)) << "not in the set";
  EXPECT_FALSE(s.tree.check_path(6));
  s.words[79].store(0);  // the level above
  EXPECT_TRUE(s.tree.test(70));
  EXPECT_FALSE(s.tree.check_path(70)) << "in the set, but no search comes by";
}

TEST(SummaryTree, Threads_EachSetsAndRetiresItsOwn_NothingIsLost) {
  constexpr std::uint32_t kSpans = 4096 * 2, kThreads = 4;
  Storage<> s(kSpans);
  std::vector<std::set<std::uint32_t>> mine(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&s, &own = mine[t], t] {
      std::mt19937 random(t);
      for (int step = 0; step < 30'000; ++step) {
        const std::uint32_t i = random() % (kSpans / kThreads) * kThreads + t;  // words are shared, spans are not
        if (random() % 2 == 0) {
          s.tree.set(i);
          own.insert(i);
        } else {
          s.tree.retire(i, [&] { return own.count(i) != 0 && random() % 2 == 0; });
          if (!s.tree.test(i)) own.erase(i);
        }
        (void)s.tree.find(random() % kSpans);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(s.tree.check_invariants());
  std::set<std::uint32_t> expected, found;
  for (const auto& own : mine) expected.insert(own.begin(), own.end());
  for (std::uint32_t i = s.tree.find(0); i != kNone; i = s.tree.find(i + 1)) found.insert(i);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace freehold::pool
