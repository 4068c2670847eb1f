// SPDX-License-Identifier: MIT
// Blocks above the size classes, through the core: runs, direct blocks, and their resize.
#include "freehold/alloc/large/large_blocks.hpp"

#include <map>

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

// Bytes before a run's block.
std::size_t colour_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block) % kSpan; }

// Loops over several blocks that all began at a span would meet in a few sets of a cache.
TEST(LargeBlocks, Neighbours_BeginAtDifferentLinesOfTheirPages) {
  constexpr unsigned kBlocks = 64;
  for (const std::size_t bytes : {40'000, 60'000, 66'000, 100 * 1024, 100'000, 200 * 1024}) {
    Machine machine;
    test::Thread thread(machine);
    std::map<std::size_t, unsigned> lines;
    std::vector<void*> blocks;
    for (unsigned i = 0; i < kBlocks; ++i) {
      blocks.push_back(thread.allocate(bytes));
      ++lines[colour_of(blocks.back())];
    }
    for (const auto& [line, count] : lines) EXPECT_LE(count, kBlocks / 7) << bytes << " at " << line;
    EXPECT_EQ(machine.stats().run_bytes, kBlocks * base::align_up(bytes, kSpan)) << "no span more";
    for (void* block : blocks) thread.free(block);
    thread.leave();
    expect_whole(machine);
  }
}

TEST(LargeBlocks, EverySize_InItsPagesAndFoundFromEachByte) {
  const std::size_t page = SmallConfig::page_bytes();
  Machine machine(small_settings(std::size_t{64} << 20));
  test::Thread thread(machine);
  std::vector<Stamped> blocks;
  for (std::size_t bytes = Classes::kMaxBytes + 1; bytes < 5 * kSpan; bytes += 1 + bytes * 1237 % 3000) {
    blocks.emplace_back(thread.allocate(bytes), bytes, static_cast<unsigned>(bytes));
    const auto* const block = blocks.back().memory;
    const std::size_t colour = colour_of(block), usable = machine.usable(block);
    EXPECT_EQ(colour % 64, 0U);
    EXPECT_LT(colour, 4096U);
    EXPECT_LE(base::ceil_div(colour + bytes, page), base::ceil_div(bytes, page) + (bytes >= 16 * page ? 1 : 0)) << bytes;
    EXPECT_GE(usable, bytes);
    EXPECT_EQ((colour + usable) % page, 0U);
    EXPECT_TRUE(bytes < 4 * kSpan || colour == 0) << "its pages may move";
    for (const std::size_t at : {std::size_t{0}, bytes / 2, usable - 1}) {
      const BlockPlace found = machine->blocks().block_around(block + at);
      EXPECT_TRUE(found.start == block && found.bytes == usable && found.in_use) << bytes;
    }
  }
  std::size_t met = 0;
  machine->blocks().for_each_block(
      [&](const BlockPlace& place) { met += machine.usable(place.start) == place.bytes ? 1 : 0; });
  EXPECT_EQ(met, blocks.size());
  for (const Stamped& each : blocks) {
    EXPECT_TRUE(each.intact()) << each.bytes;
    thread.free(each.memory);
  }
  for (std::size_t alignment = 1; alignment <= 4 * kSpan; alignment *= 2) {
    void* const block = thread.allocate_aligned(alignment, 100'000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    EXPECT_TRUE(alignment <= 64 || colour_of(block) == 0) << alignment;
    thread.free(block);
  }
  thread.leave();
  expect_whole(machine);
}

TEST(LargeBlocks, BlockBehindItsRunsBegin_GrowsAndShrinksThereAndWrongPointersAreSeen) {
  for (const bool kept : {false, true}) {
    Machine machine;
    test::Thread other(machine), thread(machine, test::Thread<Machine>::Uncached{});
    void *const before = thread.allocate(kSpan), *const block = (kept ? other : thread).allocate(100'000);
    const std::size_t colour = colour_of(block);
    ASSERT_NE(colour, 0U);
    Stamped stamped(block, 100'000, 7);
    auto& user = kept ? other : thread;
    for (const std::size_t bytes : {150'000, 300'000, 70'000, 300'000}) {
      EXPECT_EQ(user.resize(block, bytes), block) << bytes;
      EXPECT_EQ(machine.usable(block), base::align_up(colour + bytes, SmallConfig::page_bytes()) - colour);
      EXPECT_TRUE(machine->check_invariants());
    }
    void* const behind = user.allocate(4 * kSpan);
    EXPECT_EQ(user.resize(block, 600'000), nullptr) << "it cannot leave the arena page by page";
    stamped.bytes = 70'000;
    EXPECT_TRUE(stamped.intact());
    const test::HeapErrors errors;
    for (const std::ptrdiff_t at : {-static_cast<std::ptrdiff_t>(colour), std::ptrdiff_t{64}, std::ptrdiff_t{kSpan}}) {
      user.free(static_cast<char*>(block) + at);
      errors.expect(base::HeapError::kInteriorPointer, static_cast<char*>(block) + at);
    }
    user.free(block);
    errors.expect_none();
    user.free(block);
    errors.expect(base::HeapError::kDoubleFree, block);
    for (void* each : {before, behind}) user.free(each);
    other.leave();
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
