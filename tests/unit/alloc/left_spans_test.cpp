// SPDX-License-Identifier: MIT
// Slots smaller than a cache line that one thread has freed for another: while that one lives they are left to it, within
// the budget, so that two threads do not write to one line for ever.
#include <unordered_set>

#include "freehold/alloc/core.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::small_settings;
using test::SmallConfig;
using Machine = test::TestCore<>;
using Thread = test::Thread<Machine>;

constexpr std::size_t kKeep = SmallConfig::kKeepBytes;

// Thread A allocates, and B frees a random half.
struct Exchange {
  Exchange(std::size_t block, std::size_t total) : bytes(block) {
    for (std::size_t i = 0; i < total / bytes; ++i) left.push_back(a.allocate(bytes));
    std::shuffle(left.begin(), left.end(), std::minstd_rand(1));
    freed = left.size() / 2;
    for (std::size_t i = 0; i < freed; ++i, left.pop_back()) b.free(left.back());
  }
  // How many of as many new blocks of a thread begin or end on a line of a block of A's.
  std::size_t shared_lines_of_new_blocks(Thread& thread) {
    const auto ends = [&](const void* block) {
      const auto at = reinterpret_cast<std::uintptr_t>(block);
      return std::pair(at / base::kCacheLine, (at + bytes - 1) / base::kCacheLine);
    };
    std::unordered_set<std::uintptr_t> lines;
    for (const void* block : left) lines.insert({ends(block).first, ends(block).second});
    std::size_t shared = 0;
    for (std::size_t i = 0; i < freed; ++i) {
      const auto [from, to] = ends(thread.allocate(bytes));
      shared += lines.contains(from) || lines.contains(to) ? 1 : 0;
    }
    return shared;
  }
  [[nodiscard]] std::size_t span_bytes() { return machine.stats().small_span_bytes; }

  Machine machine{small_settings(std::size_t{64} << 20)};
  Thread a{machine}, b{machine};
  std::size_t bytes, freed = 0;
  std::vector<void*> left;
};

TEST(LeftSpans, FreedByAnotherThread_ItGetsLinesOfItsOwn) {
  for (const std::size_t bytes : {16, 32, 48}) {
    Exchange exchange(bytes, kKeep);
    EXPECT_LE(exchange.shared_lines_of_new_blocks(exchange.b), SmallConfig::kMaxSlots) << bytes << ": except in its array";
    EXPECT_TRUE(exchange.machine->check_invariants());
  }
}

TEST(LeftSpans, TheirThreadHasEnded_AreUsed) {
  Exchange exchange(16, kKeep);
  exchange.a.leave();
  const std::size_t before = exchange.span_bytes();
  (void)exchange.shared_lines_of_new_blocks(exchange.b);
  EXPECT_LE(exchange.span_bytes(), before + test::kSpan);
}

TEST(LeftSpans, MoreThanTheBudgetAllows_AreUsed) {
  Exchange exchange(32, 16 * kKeep);
  const std::size_t before = exchange.span_bytes();
  EXPECT_GE(exchange.shared_lines_of_new_blocks(exchange.b), exchange.freed / 4);
  EXPECT_LE(exchange.span_bytes(), before + 3 * kKeep);
}

TEST(LeftSpans, AsManyThreadsAsTheSetOfThoseThatEndedHolds_TheLivingOnesAreKnown) {
  ThreadIds<sync::NativeAtomics> ids;
  for (std::uint32_t id = 1; id < 5000; ++id) {
    ids.note_begin(id);
    EXPECT_FALSE(ids.has_ended(id));
    ids.note_end(id);
    EXPECT_TRUE(ids.has_ended(id));
  }
}

}  // namespace
}  // namespace freehold::alloc
