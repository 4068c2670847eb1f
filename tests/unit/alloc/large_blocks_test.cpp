// SPDX-License-Identifier: MIT
// Blocks above the size classes, through the core: runs, direct blocks, and their resize.
#include "freehold/alloc/large/large_blocks.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::expect_whole;
using test::FakePages;
using test::kChunk;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using test::Stamped;
using Machine = test::TestCore<>;
using Classes = SizeClasses;

// A core whose runs are shorter.
struct QuarterConfig : test::SmallConfig {
  static constexpr std::size_t kMostRunBytes = 4 * kSpan;
};

// A half of what the system allows, and 1,024 where it does not say.
TEST(LargeBlocks, AboveTheLargestRun_MappedUntilThereAreMany) {
  struct {
    std::uint64_t allowed;
    std::size_t many;
  } constexpr kCases[] = {{0, 1024}, {3000, 1500}, {1000, 1024}};
  for (const auto& [allowed, many] : kCases) {
    test::TestCore<sync::NativeAtomics, QuarterConfig> machine(small_settings(std::size_t{256} << 20));
    machine.pages.mappings = allowed;
    bool zero = false;
    std::vector<void*> blocks;
    void* const run = machine->large().allocate_large(nullptr, 4 * kSpan, 1, zero);
    EXPECT_EQ(machine.stats().direct_bytes, 0U);
    for (std::size_t i = 0; i < many + 10; ++i)
      blocks.push_back(machine->large().allocate_large(nullptr, 4 * kSpan + 1, 1, zero));
    EXPECT_EQ(machine.stats().direct_bytes, many * (4 * kSpan + SmallConfig::page_bytes())) << "the others are runs";
    blocks.push_back(run);
    for (void* block : blocks) {
      ASSERT_NE(block, nullptr);
      machine->free_large(nullptr, block);
    }
    EXPECT_TRUE(machine->check_invariants());
  }
}

TEST(LargeBlocks, Resize_RoomBehindTheBlock_IsUsedAndGoesBack) {
  for (const bool kept : {false, true}) {
    Machine machine;
    test::Thread thread(machine);
    if (kept) thread.free(thread.allocate(8 * kSpan));  // the thread keeps free spans from now on
    bool zero = false;
    void* const block = machine->large().allocate_large(kept ? thread.cache() : nullptr, 3 * kSpan, 1, zero, 2 * kSpan);
    void* const behind = thread.allocate(kSpan);
    ASSERT_EQ(static_cast<char*>(behind) - static_cast<char*>(block), static_cast<std::ptrdiff_t>(5 * kSpan));
    EXPECT_EQ(machine.usable(block), 3 * kSpan) << "what was asked for";
    for (const std::size_t bytes : {4 * kSpan, 5 * kSpan}) {
      EXPECT_EQ(thread.resize(block, bytes), block);
      EXPECT_EQ(machine.usable(block), bytes);
      EXPECT_EQ(machine.stats().run_bytes, 6 * kSpan);
    }
    EXPECT_EQ(thread.resize(block, 4 * kSpan), block);
    EXPECT_EQ(machine.stats().run_bytes, 5 * kSpan) << "one that shrinks gives its room back";
    EXPECT_TRUE(machine->check_invariants());
    EXPECT_TRUE(machine->check_accounts());
    thread.free(block);
    thread.free(behind);
    thread.leave();
    expect_whole(machine);
  }
}

// A limit counts free memory until it is unmapped: chunks go as far as they are needed, and are the first to come again.
TEST(LargeBlocks, MappingRefusedBesideFreeChunks_TheyGoAndComeAgain) {
  constexpr std::size_t kSmall = 1000, kLarge = 5 * kChunk + 1;
  Machine machine;
  test::Thread thread(machine);
  std::vector<Stamped> small;
  const auto fill = [&] {
    for (unsigned i = 0; i < 8 * kChunk / 1024; ++i) small.emplace_back(thread.allocate(kSmall), kSmall, i);
  };
  const auto empty = [&] {
    (void)machine->relief().trim();  // no mapping is kept
    for (const Stamped& s : small) ASSERT_TRUE(s.intact());
    for (const Stamped& s : small) thread.free(s.memory);
    small.clear();
    EXPECT_TRUE(machine->check_accounts());
  };
  fill();
  const std::size_t full = machine.stats().committed_bytes;
  for (int round = 0; round < 3; ++round) {
    empty();
    machine.pages.fail(1, 1, FakePages::kMap);
    void* const large = thread.allocate(kLarge);
    ASSERT_NE(large, nullptr);
    EXPECT_EQ(machine.stats().committed_bytes, full - 6 * kChunk) << round;
    EXPECT_TRUE(machine->check_invariants());
    EXPECT_TRUE(machine->check_accounts());
    machine.pages.heal();
    thread.free(large);
    fill();
    EXPECT_EQ(machine.stats().committed_bytes, full);
  }
  empty();
  machine.pages.fail_from_now_on();
  EXPECT_EQ(thread.allocate(kLarge), nullptr);
  EXPECT_EQ(machine.stats().committed_bytes, full) << "what cannot be unmapped stays";
  machine.pages.heal();
  machine.pages.fail_from_now_on(FakePages::kMap);
  EXPECT_EQ(thread.allocate(20 * kChunk), nullptr);
  EXPECT_EQ(machine.stats().committed_bytes, full) << "nothing goes where it would not help";
  machine.pages.heal();
  thread.leave();
  expect_whole(machine);
}

}  // namespace
}  // namespace freehold::alloc
