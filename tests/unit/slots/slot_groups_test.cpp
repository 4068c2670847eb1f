// SPDX-License-Identifier: MIT
#include "freehold/slots/slot_groups.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

using Classes = alloc::SizeClasses;
constexpr unsigned kShift = 16;
constexpr std::uintptr_t kBase = std::uintptr_t{3} << 40;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

std::vector<SlotGeometry> every_class() {
  std::vector<SlotGeometry> all;
  for (const alloc::SizeClass c : alloc::AllClasses<Classes>{})
    all.push_back(SlotGeometry::of(kBase, kShift, static_cast<std::uint32_t>(Classes::slot_bytes(c))));
  return all;
}

using GroupMap = std::map<WordIndex, std::uint64_t>;

GroupMap united(const SlotGroups& groups) {
  GroupMap all;
  for (std::size_t i = 0; i < groups.count; ++i) {
    EXPECT_NE(groups.groups[i].bits, 0U);
    EXPECT_EQ(all[groups.groups[i].word] & groups.groups[i].bits, 0U) << "a slot in two groups";
    all[groups.groups[i].word] |= groups.groups[i].bits;
  }
  return all;
}

// By division, slot by slot.
GroupMap expected(const SlotGeometry& g, const std::vector<void*>& slots) {
  GroupMap all;
  for (void* slot : slots) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(slot) - g.base;
    const std::uint32_t index = static_cast<std::uint32_t>(offset % (1U << kShift)) / g.slot_bytes;
    all[word_index(static_cast<std::uint32_t>(offset >> kShift), index / 64)] |= base::bit(index % 64);
  }
  return all;
}

TEST(SlotGeometry, Index_EveryOffsetOfEveryClass_IsTheQuotient) {
  for (const SlotGeometry& g : every_class())
    for (std::uint32_t offset = 0; offset < 1U << kShift; ++offset) ASSERT_EQ(g.index(offset), offset / g.slot_bytes);
}

class EveryVersion : public testing::TestWithParam<decltype(&group_slots)> {};
INSTANTIATE_TEST_SUITE_P(SlotGroups, EveryVersion, testing::Values(&group_slots, &group_slots_scalar),
                         [](const auto& info) { return info.index == 0 ? std::string("chosen") : std::string("scalar"); });

// As a thread acquires and releases: pieces of neighbours, up or down, that begin and end anywhere. A slot in a hundred is
// out of its place, so that a batch that only begins and ends like neighbours is one of them.
TEST_P(EveryVersion, BatchesOfNeighbours_EitherDirection_GroupsAreThoseOfDivision) {
  std::mt19937 random(7);
  SlotGroups groups;
  for (const SlotGeometry& g : every_class()) {
    const std::uint32_t per_span = (1U << kShift) / g.slot_bytes;
    for (int round = 0; round < 200; ++round) {
      std::vector<void*> slots;
      std::set<void*> distinct;
      const std::size_t n = 1 + random() % kMaxBatch;
      while (slots.size() < n && distinct.size() < 2 * per_span) {
        const bool descends = random() % 2 == 0;
        auto number = static_cast<std::int64_t>(random() % (2 * per_span));
        // To the end of the word more often than not.
        const std::int64_t in_word = descends ? number % 64 + 1 : 64 - number % 64;
        const std::int64_t length = random() % 4 == 0 ? 1 + random() % 130 : in_word;
        for (std::int64_t i = 0; i < length && slots.size() < n && number >= 0 && number < 2 * per_span; ++i) {
          const std::uint32_t slot = random() % 100 == 0 ? random() % (2 * per_span) : static_cast<std::uint32_t>(number);
          void* const address =
              at(g.base + (std::uintptr_t{slot / per_span} << kShift) + std::size_t{slot % per_span} * g.slot_bytes);
          if (distinct.insert(address).second) slots.push_back(address);
          number += descends ? -1 : 1;
        }
      }
      GetParam()(g, slots.data(), slots.size(), groups);
      ASSERT_EQ(groups.misplaced, 0U);
      ASSERT_EQ(groups.repeated, 0U);
      ASSERT_EQ(united(groups), expected(g, slots)) << g.slot_bytes << " bytes, " << slots.size() << " slots";
    }
  }
}

TEST_P(EveryVersion, MisplacedAddress_EveryPosition_IsReportedAndTheOthersGrouped) {
  SlotGroups groups;
  for (const SlotGeometry& g : every_class())
    for (const std::uint32_t shift : {1U, 8U, g.slot_bytes - 1})
      for (std::size_t wrong = 0; wrong < 9; ++wrong) {
        std::vector<void*> slots, right;
        for (std::size_t i = 0; i < 9; ++i) {
          slots.push_back(at(kBase + (std::uintptr_t{i} << kShift)));
          if (i != wrong) right.push_back(slots.back());
        }
        slots[wrong] = static_cast<char*>(slots[wrong]) + shift;
        GetParam()(g, slots.data(), slots.size(), groups);
        ASSERT_EQ(groups.misplaced, reinterpret_cast<std::uintptr_t>(slots[wrong])) << g.slot_bytes << " + " << shift;
        ASSERT_EQ(united(groups), expected(g, right));
      }
}

TEST_P(EveryVersion, BehindTheLastWholeSlot_AnyPosition_IsMisplaced) {
  SlotGroups groups;
  for (const SlotGeometry& g : every_class()) {
    const std::uint32_t tail = (1U << kShift) / g.slot_bytes * g.slot_bytes;
    if (tail == 1U << kShift) continue;
    for (std::size_t wrong = 0; wrong < 9; ++wrong) {
      std::vector<void*> slots, right;
      for (std::size_t i = 0; i < 9; ++i) {
        slots.push_back(at(kBase + (std::uintptr_t{i} << kShift) + (i == wrong ? tail : g.last_offset)));
        if (i != wrong) right.push_back(slots.back());
      }
      GetParam()(g, slots.data(), slots.size(), groups);
      ASSERT_EQ(groups.misplaced, reinterpret_cast<std::uintptr_t>(slots[wrong])) << g.slot_bytes;
      ASSERT_EQ(united(groups), expected(g, right));
    }
  }
}

TEST_P(EveryVersion, RepeatedAddress_AnyTwoPositionsOfARun_IsReportedAndCountedOnce) {
  SlotGroups groups;
  const SlotGeometry g = SlotGeometry::of(kBase, kShift, 48);
  for (std::size_t n = 2; n < 20; ++n)
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b) {
        std::vector<void*> slots;
        for (std::size_t i = 0; i < n; ++i) slots.push_back(at(kBase + (i * 37 % 64) * 48));
        slots[b] = slots[a];
        GetParam()(g, slots.data(), n, groups);
        ASSERT_EQ(groups.repeated, reinterpret_cast<std::uintptr_t>(slots[a])) << n << ": " << a << ", " << b;
        ASSERT_EQ(united(groups), expected(g, slots));
      }
}

TEST(ListSlots, AnyBits_HighestAddressFirstAndGroupedBackTheSame) {
  std::mt19937_64 random(3);
  for (const SlotGeometry& g : every_class()) {
    const std::uint32_t per_span = (1U << kShift) / g.slot_bytes;
    for (int round = 0; round < 40; ++round) {
      const unsigned w = static_cast<unsigned>(random() % ((per_span + 63) / 64));
      std::uint64_t bits = round == 0 ? ~std::uint64_t{0} : (round == 1 ? 0 : random() & random());
      bits &= SpanShape{per_span}.full(w);
      void* slots[64];
      const std::size_t n = list_slots(g, {word_index(9, w), bits}, slots);
      ASSERT_EQ(n, static_cast<std::size_t>(std::popcount(bits)));
      ASSERT_TRUE(std::is_sorted(slots, slots + n, std::greater<>())) << "popped from the end, the lowest comes first";
      SlotGroups groups;
      group_slots(g, slots, n, groups);
      ASSERT_EQ(groups.misplaced, 0U);
      ASSERT_EQ(united(groups), bits == 0 ? GroupMap{} : (GroupMap{{word_index(9, w), bits}}));
    }
  }
}

}  // namespace
}  // namespace freehold::pool
