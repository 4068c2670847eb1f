// SPDX-License-Identifier: MIT
// The table against a map, with the peak's set kept beside it as a copy.
#include "freehold/profile/sample_table.hpp"
#include "tests/support/test.hpp"

namespace freehold::profile {
namespace {

using Table = SampleTable<sync::NativeAtomics>;
constexpr std::uintptr_t kSpan = std::uintptr_t{1} << Table::kBlockShift;

struct World {
  explicit World(std::size_t count) : places(std::make_unique<Table::Place[]>(count)), log(count) {
    table.init(places.get(), count, log.data());
  }
  std::unique_ptr<Table::Place[]> places;
  std::vector<Sample> log;
  Table table;
};

// In slots of one size, as blocks that are resized where they are.
Sample sample_of(std::uintptr_t block, std::uint64_t bytes) { return {block, bytes, 10'000, 4'096, 7}; }

using Bytes = std::map<std::uintptr_t, std::uint64_t>;
struct Seen {
  Bytes now, peak;
};
Seen seen_in(Table& table) {
  Seen seen;
  table.for_each([&](const Sample& sample, bool is_in_use, bool was_at_peak) {
    EXPECT_TRUE(is_in_use || was_at_peak);
    if (is_in_use) {
      EXPECT_TRUE(seen.now.emplace(sample.block, sample.bytes).second);
    }
    if (was_at_peak) {
      EXPECT_TRUE(seen.peak.emplace(sample.block, sample.bytes).second);
    }
  });
  return seen;
}

// Blocks whose addresses all lead to the same places at first: the neighbours there take some, scattered places the others.
TEST(SampleTable, SamePlaceForManyBlocks_AllFound) {
  constexpr std::uintptr_t kCount = 256, kBlocks = 150;
  World world(kCount);
  const auto block = [](std::uintptr_t i) { return (3 + kCount * i) * kSpan; };
  for (std::uintptr_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(world.table.insert(sample_of(block(i), 10 + i))) << i;
  Sample found;
  for (std::uintptr_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(world.table.find(block(i), found)) << i;
    EXPECT_EQ(found.bytes, 10 + i);
  }
  // Behind the places of those that were removed the others are still found.
  for (std::uintptr_t i = 0; i < kBlocks; i += 2) ASSERT_TRUE(world.table.remove(block(i), found));
  for (std::uintptr_t i = 1; i < kBlocks; i += 2) ASSERT_TRUE(world.table.find(block(i), found)) << i;
  EXPECT_TRUE(world.table.insert(sample_of(block(999), 1))) << "a place is used again";
  EXPECT_EQ(world.table.figures().lost, 0U);
}

TEST(SampleTable, Full_TheNextIsCountedAsLost) {
  World world(64);
  for (std::uintptr_t i = 1; i <= 64; ++i) ASSERT_TRUE(world.table.insert(sample_of(i * kSpan, 1)));
  EXPECT_FALSE(world.table.insert(sample_of(65 * kSpan, 1)));
  EXPECT_EQ(world.table.figures().lost, 1U);
}

// Random growth and shrinking: at every step the table says what is in use, and what was at the highest estimate so far.
TEST(SampleTable, RandomSteps_NowAndPeakAsAMapSays) {
  World world(1024);
  std::minstd_rand random(1);
  Bytes now, peak;
  std::uint64_t live = 0, most = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uintptr_t block = (1 + random() % 300) * kSpan;
    const bool shrinks = step / 1'000 % 3 == 2;
    Sample found;
    const auto follow = [&] {
      if (live <= most) return;
      most = live;
      peak = now;
    };
    if (now.contains(block) && random() % 3 == 0) {
      const std::uint64_t bytes = shrinks ? now[block] / 2 + 1 : 1 + random() % 10'000;
      live -= sample_of(block, now[block]).estimated_bytes();
      ASSERT_TRUE(world.table.resize(block, bytes, found));
      now[block] = bytes;
      live += found.estimated_bytes();
      follow();
    } else if (now.contains(block)) {
      if (!shrinks && random() % 2 == 0) continue;
      ASSERT_TRUE(world.table.remove(block, found));
      ASSERT_EQ(found.bytes, now[block]);
      live -= found.estimated_bytes();
      now.erase(block);
    } else if (!shrinks || random() % 4 == 0) {
      const Sample sample = sample_of(block, 1 + random() % 10'000);
      ASSERT_TRUE(world.table.insert(sample));
      now[block] = sample.bytes;
      live += sample.estimated_bytes();
      follow();
    }
    if (step % 97 != 0) continue;
    const Seen seen = seen_in(world.table);
    ASSERT_EQ(seen.now, now) << step;
    ASSERT_EQ(seen.peak, peak) << step;
    ASSERT_EQ(world.table.figures().live_bytes, live);
    ASSERT_EQ(world.table.figures().peak_bytes, most);
  }
  EXPECT_GT(most, 0U);
}

}  // namespace
}  // namespace freehold::profile
