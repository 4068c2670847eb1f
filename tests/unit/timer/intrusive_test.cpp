// SPDX-License-Identifier: MIT
// The intrusive containers against their standard counterparts.
#include <deque>

#include "freehold/timer/intrusive_list.hpp"
#include "freehold/timer/intrusive_multimap.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

struct Entry : timer::MultimapHook<Entry, int> {
  int name = 0;
};
using List = timer::IntrusiveList<Entry>;
using Multimap = timer::IntrusiveMultimap<Entry, int>;

std::vector<int> names(const List& list) {
  std::vector<int> all;
  list.for_each([&](const Entry& entry) { all.push_back(entry.name); });
  return all;
}
std::vector<int> names(const Multimap& map) {
  std::vector<int> all;
  map.for_each([&](const Entry& entry) { all.push_back(entry.name); });
  return all;
}

// Nothing is looked at but the head: what was made unreadable for a k-step walk would not be found by this, a count is.
struct CountedLess {
  static inline std::size_t comparisons = 0;
  bool operator()(int a, int b) const {
    ++comparisons;
    return a < b;
  }
};
TEST(IntrusiveMultimap, TakeAllOfAHundredThousand_ComparesAsOftenAsALookUp) {
  constexpr std::size_t kEqual = 100'000;
  std::vector<Entry> e(kEqual + 100);
  timer::IntrusiveMultimap<Entry, int, CountedLess> map;
  for (std::size_t i = 0; i < e.size(); ++i) {
    e[i].key = i < kEqual ? 50 : static_cast<int>(i - kEqual);
    map.insert(e[i]);
  }
  CountedLess::comparisons = 0;
  List taken;
  map.take_all(50, taken);
  EXPECT_LE(CountedLess::comparisons, 16u);
  EXPECT_EQ(names(taken).size(), kEqual + 1);
}

// A tree that does not balance takes 50,000 comparisons for each.
TEST(IntrusiveMultimap, AscendingAndDescendingKeys_ComparedLogarithmically) {
  constexpr int kKeys = 100'000;
  for (const int sign : {1, -1}) {
    std::vector<Entry> e(kKeys);
    timer::IntrusiveMultimap<Entry, int, CountedLess> map;
    CountedLess::comparisons = 0;
    for (int i = 0; i < kKeys; ++i) {
      e[static_cast<std::size_t>(i)].key = sign * i;
      map.insert(e[static_cast<std::size_t>(i)]);
    }
    EXPECT_LE(CountedLess::comparisons, std::size_t{kKeys} * 40);
    timer::Inside::check_invariants(map);
    EXPECT_EQ(map.front().key, sign > 0 ? 0 : 1 - kKeys);
  }
}

TEST(IntrusiveMultimap, RandomOperations_AsStdMultimap) {
  std::mt19937 random(7);
  std::vector<Entry> e(300);
  Multimap map;
  std::multimap<int, const Entry*> reference;
  for (std::size_t i = 0; i < e.size(); ++i) e[i].name = static_cast<int>(i);
  const auto erase_from_reference = [&](const Entry& entry) {
    auto [at, end] = reference.equal_range(entry.key);
    while (at->second != &entry) ++at;
    ASSERT_NE(at, end);
    reference.erase(at);
  };
  for (int step = 0; step < 20'000; ++step) {
    Entry& entry = e[random() % e.size()];
    if (random() % 50 == 0) {
      List taken;
      const int key = static_cast<int>(random() % 40);
      map.take_all(key, taken);
      const auto [from, to] = reference.equal_range(key);
      auto at = from;
      while (!taken.empty()) {
        ASSERT_NE(at, to);
        ASSERT_EQ(&taken.pop_front(), at++->second);
      }
      ASSERT_EQ(at, to);
      reference.erase(from, to);
    } else if (entry.is_linked()) {
      map.erase(entry);
      erase_from_reference(entry);
    } else {
      entry.key = static_cast<int>(random() % 40);
      map.insert(entry);
      reference.emplace(entry.key, &entry);
    }
    ASSERT_EQ(map.empty(), reference.empty());
    if (!map.empty()) {
      ASSERT_EQ(&map.front(), reference.begin()->second);
    }
    if (step % 16 == 0) {
      timer::Inside::check_invariants(map);
      std::vector<int> expected;
      for (const auto& [key, each] : reference) expected.push_back(each->name);
      ASSERT_EQ(names(map), expected);
    }
  }
}

}  // namespace
}  // namespace freehold::test
