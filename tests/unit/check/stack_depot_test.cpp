// SPDX-License-Identifier: MIT
// The depot of call stacks against a map of vectors. Two threads at once: stack_depot_model.cpp, and here with real ones.
#include "freehold/check/stack_depot.hpp"
#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

using Depot = StackDepot<sync::NativeAtomics>;
using Addresses = std::vector<void*>;

void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

Addresses read(const Depot& depot, Depot::Id id, unsigned most = Depot::kMostDepth) {
  Addresses out(most, nullptr);
  out.resize(depot.read(id, out.data(), most));
  return out;
}

class StackDepotTest : public testing::Test {
 protected:
  void init(std::size_t places, std::size_t words) { ASSERT_TRUE(depot.init(pages, places, words)); }
  Depot::Id insert(const Addresses& stack) { return depot.insert(stack.data(), static_cast<unsigned>(stack.size())); }

  os::Pages pages;
  Depot depot;
};

TEST_F(StackDepotTest, RandomStacks_EachOnceAndAsItWas) {
  init(1 << 12, 1 << 16);
  std::mt19937 random(7);
  std::map<Addresses, Depot::Id> known;
  std::set<Depot::Id> ids;
  for (int i = 0; i < 5'000; ++i) {
    Addresses stack(1 + random() % 16);
    for (void*& a : stack) a = address(0x1000 + random() % 3);
    stack.resize(1 + random() % stack.size());
    const Depot::Id id = insert(stack);
    ASSERT_NE(id, Depot::kUnknown);
    const auto [at, is_new] = known.emplace(stack, id);
    ASSERT_EQ(at->second, id);
    ASSERT_EQ(ids.insert(id).second, is_new);
  }
  for (const auto& [stack, id] : known) EXPECT_EQ(read(depot, id), stack);
}

TEST_F(StackDepotTest, DeeperThanTheMost_IsCut) {
  init(16, 256);
  Addresses stack(Depot::kMostDepth + 9);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = address(i + 1);
  const Depot::Id id = insert(stack);
  stack.resize(Depot::kMostDepth);
  EXPECT_EQ(read(depot, id), stack);
  stack.resize(3);
  EXPECT_EQ(read(depot, id, 3), stack);
}

TEST_F(StackDepotTest, NoWordsLeft_NewStacksAreUnknownAndOldOnesStay) {
  init(64, 1 + 3 * 3);  // word 0, and three stacks of two
  std::vector<Depot::Id> ids;
  for (std::uintptr_t i = 1; i <= 3; ++i) ids.push_back(insert({address(i), address(99)}));
  EXPECT_EQ(depot.used_words(), 10U);
  EXPECT_EQ(insert({address(4), address(99)}), Depot::kUnknown);
  EXPECT_EQ(depot.used_words(), 10U);
  for (std::uintptr_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(read(depot, ids[i - 1]), (Addresses{address(i), address(99)}));
    EXPECT_EQ(insert({address(i), address(99)}), ids[i - 1]);
  }
}

// A number from a damaged header leads into the middle of an entry, where the words say a depth of anything.
TEST_F(StackDepotTest, WrongNumber_ReadsNothingBeyondTheEnd) {
  std::vector<Depot::Word> words(8);
  std::vector<Depot::Place> table(2);
  depot.init(table.data(), table.size(), words.data(), words.size());
  (void)insert({address(255), address(255), address(255)});
  for (Depot::Id id = 0; id < 9; ++id) EXPECT_LE(read(depot, id).size(), 7U);
}

}  // namespace
}  // namespace freehold::check
