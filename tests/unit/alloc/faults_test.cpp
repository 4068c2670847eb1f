// SPDX-License-Identifier: MIT
// The page source fails at the k-th call, for every k of a scripted life. The answer is null (or the former block), and
// nothing is lost: blocks keep their content and can be freed. With the source healed the machine holds as many blocks as
// one that never saw a fault.
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::FakeClock;
using test::FakePages;
using test::kSpan;
using test::small_settings;
using test::Stamped;
using Machine = test::TestCore<>;
using Thread = test::Thread<Machine>;
using Classes = SizeClasses;

constexpr std::size_t kCapacity = std::size_t{16} << 20;

struct Life {
  std::uint64_t refused = 0;  // requests that ended in null
  bool intact = true;         // contents and invariants, at every look
};

// Small and large blocks, alignments, growing and shrinking, threads that come and go, trims. Frees everything.
Life live(Machine& machine) {
  Life life;
  std::vector<Stamped> blocks;
  const auto keep = [&](void* block, std::size_t bytes) {
    if (block == nullptr)
      ++life.refused;
    else
      blocks.emplace_back(block, bytes, static_cast<unsigned>(blocks.size() * 7 + 1));
  };
  const auto drop_every = [&](Thread& thread, std::size_t step) {
    std::vector<Stamped> rest;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % step != 0) {
        rest.push_back(blocks[i]);
        continue;
      }
      life.intact &= blocks[i].intact();
      thread.free(blocks[i].memory);
    }
    blocks = std::move(rest);
  };
  {
    Thread first(machine);
    for (const std::size_t bytes : {16, 100, 1000, 3000, 20'000, 32'768})
      for (int i = 0; i < 40; ++i) keep(first.allocate(bytes), bytes);
    for (const std::size_t bytes : {std::size_t{40'000}, 2 * kSpan, 9 * kSpan, std::size_t{3} << 20})
      keep(first.allocate(bytes), bytes);
    for (std::size_t alignment = 64; alignment <= std::size_t{1} << 20; alignment *= 8)
      keep(first.allocate_aligned(alignment, 3000), 3000);
    {
      Thread second(machine);
      for (int i = 0; i < 200; ++i) keep(second.allocate(512), 512);
      drop_every(second, 3);
    }
    {  // many at once: their records, and then their bins, need more than one chunk of metadata each
      std::vector<std::unique_ptr<Thread>> threads;
      for (int t = 0; t < 80; ++t) threads.push_back(std::make_unique<Thread>(machine));
      for (auto& thread : threads)
        for (SizeClass c{1}; c < SizeClass{9}; ++c) keep(thread->allocate_class(c), 16);
      life.intact &= machine->check_invariants() && machine->check_accounts();
      for (auto& thread : threads) drop_every(*thread, 60);
    }
    for (int i = 0; i < 4; ++i) keep(first.allocate(5 * kSpan), 5 * kSpan);  // side by side: to grow, one has to move
    for (Stamped& b : blocks) {                                              // grow what is large, in place or by moving
      if (b.bytes <= Classes::kMaxBytes) continue;
      void* moved = machine->large().resize_large(nullptr, b.memory, b.bytes + 6 * kSpan);
      if (moved == nullptr) continue;
      b.memory = static_cast<unsigned char*>(moved);
      life.intact &= b.intact();
      const std::size_t before = b.bytes;
      b.bytes += 6 * kSpan;
      b.write(before);
    }
    for (const std::size_t bytes : {2 * test::kChunk, 3 * test::kChunk, test::kChunk + 4096}) {  // up and down
      void* const block = first.allocate(2 * test::kChunk);
      if (block == nullptr) {
        ++life.refused;
        continue;
      }
      Stamped b(block, 2 * test::kChunk, 9);
      void* moved = machine->large().resize_large(nullptr, b.memory, bytes);
      if (moved != nullptr) b.memory = static_cast<unsigned char*>(moved);
      b.bytes = std::min(b.bytes, bytes);
      life.intact &= b.intact();
      first.free(b.memory);
    }
    for (int i = 0; i < 20; ++i) {  // large blocks come and go: some are kept, some end
      const std::size_t bytes = test::kChunk + static_cast<std::size_t>(i % 3 + 1) * 100'000;
      keep(first.allocate(bytes), bytes);
      if (i % 4 == 3) drop_every(first, 2);
    }
    (void)machine->relief().trim();
    life.intact &= machine->check_invariants() && machine->check_accounts();
    for (int i = 0; i < 10; ++i) {
      FakeClock::pass(300);
      drop_every(first, 5);
      keep(first.allocate(5 * kSpan), 5 * kSpan);
      for (int k = 0; k < 100; ++k) keep(first.allocate(2000), 2000);
    }
  }
  Thread late(machine, Thread::Uncached{});
  for (int i = 0; i < 20; ++i) keep(late.allocate(300), 300);
  drop_every(late, 1);
  (void)machine->relief().trim();
  return life;
}

// How many blocks of a span's size fit into the arena, and of 1 KiB, taken until null, and given back.
std::size_t capacity(Machine& machine) {
  std::vector<void*> runs, slots;
  for (RunPlace place; (place = machine.arena().runs().allocate_run(1, 1, FakeClock::now())).first != kNoSpan;)
    runs.push_back(reinterpret_cast<void*>(machine.arena().address(place.first)));
  for (void* run : runs) machine->free_large(nullptr, run);
  Thread thread(machine);
  for (void* slot; (slot = thread.allocate(1024)) != nullptr;) slots.push_back(slot);
  for (void* slot : slots) thread.free(slot);
  return runs.size() * 1'000'000 + slots.size();
}

void expect_as_good_as_new(Machine& machine) {
  machine.pages.heal();
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  (void)machine->relief().trim();
  EXPECT_EQ(machine.stats().free_dirty_bytes, 0U) << "what was refused is tried again";
  EXPECT_EQ(capacity(machine), kCapacity / kSpan * 1'000'000 + kCapacity / 1024) << "memory is lost";
  EXPECT_TRUE(machine->check_invariants());
  (void)machine->relief().trim();
  EXPECT_TRUE(machine->check_accounts());
  const Stats s = machine.stats();
  EXPECT_EQ(s.small_span_bytes + s.run_bytes + s.direct_bytes + s.free_dirty_bytes + s.threads, 0U);
  machine.arena().purge().set_limit(std::uint64_t{1} << 40);
  EXPECT_TRUE(machine.arena().purge().admit(0, 0));  // settles what the CPUs have not reported
  EXPECT_EQ(machine.arena().budget().footprint(), 0);
}

class Faults : public testing::TestWithParam<unsigned> {};  // the kind of call that fails; the last is any

const char* const kNames[] = {"place",     "map_at",   "map",         "unmap",    "purge", "remap",
                              "move_onto", "move_out", "advise_huge", "populate", "name",  "any"};
INSTANTIATE_TEST_SUITE_P(EveryKind, Faults,
                         testing::Values(FakePages::kMapAt, FakePages::kMap, FakePages::kUnmap, FakePages::kPurge,
                                         FakePages::kRemap, FakePages::kMoveOnto, FakePages::kMoveOut,
                                         FakePages::kAdviseHuge, FakePages::kKinds),
                         [](const auto& info) { return std::string(kNames[info.param]); });

TEST_P(Faults, TheKthCallAlone_NothingIsLost) {
  if (GetParam() == FakePages::kKinds) return;  // the others have seen every call
  for (std::uint64_t k = 1;; ++k) {
    Machine machine(small_settings(kCapacity));
    ASSERT_TRUE(machine.ready());
    machine.pages.fail(k, k, GetParam());
    const Life life = live(machine);
    ASSERT_TRUE(life.intact) << k;
    ASSERT_TRUE(machine->check_invariants() && machine->check_accounts()) << k;
    const bool done = machine.pages.counted() < k;
    expect_as_good_as_new(machine);
    ASSERT_FALSE(testing::Test::HasFailure()) << "call " << k;
    if (done) break;
  }
}

TEST_P(Faults, EveryCallFromTheKthOn_EndsInNullAndNothingIsLost) {
  for (std::uint64_t k = 1;; k += 1 + k / 16) {
    Machine machine(small_settings(kCapacity));
    ASSERT_TRUE(machine.ready());
    machine.pages.fail(k, FakePages::kNever, GetParam());
    const Life life = live(machine);
    ASSERT_TRUE(life.intact) << k;
    ASSERT_TRUE(machine->check_invariants() && machine->check_accounts()) << k;
    if (k == 1 && GetParam() == FakePages::kKinds) {
      EXPECT_GT(life.refused, 1000U) << "without memory nothing can be had";
    }
    const bool done = machine.pages.counted() < k;
    expect_as_good_as_new(machine);
    ASSERT_FALSE(testing::Test::HasFailure()) << "from call " << k;
    if (done) break;
  }
}

// The script above reaches every kind of call: else it would show nothing.
TEST(FaultsScript, ReachesEveryKindOfCall) {
  Machine machine(small_settings(kCapacity));
  const Life life = live(machine);
  EXPECT_EQ(life.refused, 0U);
  EXPECT_TRUE(life.intact);
  EXPECT_EQ(machine.pages.calls(FakePages::kPlace), 1U) << "unless the first place was taken";
  for (const auto kind : {FakePages::kMapAt, FakePages::kMap, FakePages::kUnmap, FakePages::kPurge, FakePages::kRemap,
                          FakePages::kMoveOut, FakePages::kAdviseHuge, FakePages::kName})
    EXPECT_GE(machine.pages.calls(kind), 2U) << kNames[kind];
  expect_as_good_as_new(machine);
}

// Threads meet a source that refuses now and then.
TEST(FaultsThreads, SourceRefusesNowAndThen_ContentsHoldAndNothingIsLost) {
  Machine machine(small_settings(kCapacity), Machine::kBudget, 2);
  std::atomic<bool> wrong{false}, stop{false};
  std::thread saboteur([&] {
    std::mt19937 random(1);
    while (!stop) {
      const std::uint64_t first = 1 + random() % 8;
      machine.pages.fail(first, first + random() % 4);
      std::this_thread::yield();
    }
    machine.pages.heal();
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int lives = 0; lives < 8; ++lives) {
        Thread thread(machine);
        std::vector<Stamped> blocks;
        for (int step = 0; step < 1500; ++step) {
          if (random() % 2 == 0 && blocks.size() < 150) {
            const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 4 * kSpan : 5000);
            if (void* block = thread.allocate(bytes); block != nullptr) blocks.emplace_back(block, bytes, random());
          } else if (!blocks.empty()) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            if (!blocks.back().intact()) wrong = true;
            thread.free(blocks.back().memory);
            blocks.pop_back();
          }
          if (step % 128 == 0) (void)machine->relief().trim();
        }
        for (const Stamped& b : blocks) thread.free(b.memory);
      }
    });
  for (auto& thread : threads) thread.join();
  stop = true;
  saboteur.join();
  EXPECT_FALSE(wrong);
  expect_as_good_as_new(machine);
}

}  // namespace
}  // namespace freehold::alloc
