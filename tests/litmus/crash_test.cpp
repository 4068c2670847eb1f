// SPDX-License-Identifier: MIT
// Threads that stop for ever: every step is a place to die, the dead take no step and wake no thread, and a thread that
// awaits an end has what the dead one did in its past.
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/test.hpp"

namespace freehold::sim {
namespace {

using A = SimAtomics;
using Word = A::atomic<std::uint32_t>;
constexpr Order kRelaxed = Order::relaxed, kAcquire = Order::acquire, kRelease = Order::release;

TEST(Crash, ThreeStores_DiesBeforeEach_EveryPrefixSeen) {
  std::set<std::uint32_t> seen;
  const Result result = explore({.name = "crash/prefixes", .crashes = 1}, [&](Execution& run) {
    Word word{0};
    run.spawn([&] {
      for (std::uint32_t i = 1; i <= 3; ++i) word.store(i, kRelaxed);
    });
    run.check([&] { seen.insert(word.load()); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(seen, (std::set<std::uint32_t>{0, 1, 2, 3}));
}
TEST(Crash, OneOfTwo_AtMostOneDies_OnlyMortals) {
  std::set<unsigned> sums;
  const Result result = explore({.name = "crash/mortal", .crashes = 1, .mortal = 0b011}, [&](Execution& run) {
    Word words[3]{};
    for (Word& word : words) run.spawn([&] { word.store(1, kRelaxed); });
    run.check([&] {
      SIM_CHECK(words[2].load() == 1);
      sums.insert(words[0].load() + words[1].load());
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(sums, (std::set<unsigned>{1, 2}));
}
TEST(Crash, HoldsALock_TheOtherSleepsForEver) {
  const Result result = explore({.name = "crash/lock", .crashes = 1}, [](Execution& run) {
    Word lock{0};
    for (int i = 0; i < 2; ++i) {
      run.spawn([&] {
        while (lock.exchange(1, kAcquire) != 0) A::wait_shared(lock, 1u);
        lock.store(0, kRelease);
        A::notify_one_shared(lock);
      });
    }
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kDeadlock) << result;
  EXPECT_NE(result.trace.find(" dies"), std::string::npos) << result;
}
TEST(Crash, AwaitEnd_TellsTheDead_AndOrdersWhatTheyDid) {
  bool died = false, lived = false;
  const Result result = explore({.name = "crash/await", .crashes = 1, .mortal = 1}, [&](Execution& run) {
    A::var<unsigned> data{0};
    Word word{0};
    run.spawn([&] {
      word.store(1, kRelaxed);
      data.store(1);
      word.store(2, kRelaxed);
    });
    run.spawn([&] {
      const std::uint32_t ended = await_end(0);
      SIM_CHECK(ended == 1);
      const std::uint32_t reached = word.load(kRelaxed);  // no older value: the end happens before
      SIM_CHECK(is_dead(0) || reached == 2);
      SIM_CHECK(reached != 2 || data.load() == 1);
      data.store(3);  // no race
      (is_dead(0) ? died : lived) = true;
    });
    run.check([] {});
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(died && lived);
}
TEST(Crash, AwaitEnd_OfOneWhoSleeps_Deadlock) {
  const Result result = explore({.name = "crash/no thread ends"}, [](Execution& run) {
    Word word{0};
    run.spawn([&] { A::wait_shared(word, 0u); });
    run.spawn([&] { await_end(0); });
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kDeadlock) << result;
}
// Random programs: the reduction loses no outcome of a crash, nor what a thread that awaits it sees.
TEST(Crash, Reduction_SameOutcomes) {
  std::set<std::uint32_t> outcomes[2];
  for (const bool reduction : {false, true}) {
    const Result result =
        explore({.name = "crash/reduction", .preemptions = 2, .crashes = 2, .mortal = 3, .reduction = reduction},
                [&](Execution& run) {
                  Word words[2]{};
                  std::uint32_t saw = 0;
                  for (unsigned i = 0; i < 2; ++i) {
                    run.spawn([&, i] {
                      words[i].store(1, kRelaxed);
                      words[i].store(2 + words[1 - i].load(kRelaxed), kRelaxed);
                    });
                  }
                  run.spawn([&] {
                    const std::uint32_t ended = await_end(0);
                    saw = ended | (is_dead(0) && (ended & 1) != 0 ? 4u : 0u) | words[0].load(kRelaxed) << 4;
                  });
                  run.check([&] { outcomes[reduction].insert(saw | words[0].load() << 8 | words[1].load() << 12); });
                });
    EXPECT_TRUE(result.ok()) << result;
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
  EXPECT_GT(outcomes[0].size(), 20u);
}
TEST(Crash, AtExitCalls_NotMadeForTheDead) {
  static unsigned calls;
  const Result result = explore({.name = "crash/exit", .crashes = 1}, [](Execution& run) {
    Word word{0};
    calls = 0;
    run.spawn([&] {
      A::at_thread_exit([]() noexcept { ++calls; });
      word.store(1, kRelaxed);
    });
    run.check([&] { SIM_CHECK(calls == word.load()); });
  });
  EXPECT_TRUE(result.ok()) << result;
}
TEST(SharedWait, HalfOfALongWord_OnlyTheLowerHalfIsCompared) {
  const Result result = explore({.name = "shared wait"}, [](Execution& run) {
    A::atomic<std::uint64_t> word{7};
    run.spawn([&] {
      A::wait_shared(word, std::uint64_t{8});  // another value: returns at once
      while (word.load(kAcquire) == 7) A::wait_shared(word, std::uint64_t{7});
    });
    run.spawn([&] {
      word.store(std::uint64_t{1} << 32 | 9, kRelease);
      A::notify_all_shared(word);
    });
    run.check([] {});
  });
  EXPECT_TRUE(result.ok()) << result;
}
TEST(SharedWait, OnlyTheUpperHalfChanged_SleepsOn) {
  const Result result = explore({.name = "shared wait, upper half", .stale = 0}, [](Execution& run) {
    A::atomic<std::uint64_t> word{std::uint64_t{1} << 32 | 7};
    run.spawn([&] { A::wait_shared(word, std::uint64_t{7}); });
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kDeadlock) << result;
}

}  // namespace
}  // namespace freehold::sim
