// SPDX-License-Identifier: MIT
// Simulated CPUs and restartable sequences: what they must show and what they must never show.
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/test.hpp"

namespace freehold::sim {
namespace {

using Word = SimAtomics::atomic<unsigned>;
using Outcomes = std::set<std::string>;

Options options(unsigned cpus, unsigned preemptions = 4) {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return {.name = info->name(), .cpus = cpus, .preemptions = preemptions, .stale = 2};
}

// Adds one to the counter of the CPU, or to the first, by load and store.
template <class S>
void add_one(Word* counters, bool of_cpu, unsigned& tries) {
  for (;;) {
    ++tries;
    const S sequence;
    Word& counter = counters[of_cpu ? sequence.cpu() : 0];
    const unsigned old = counter.load(Order::relaxed);
    if (sequence.goes_on() && sequence.commit(counter, old + 1)) return;
  }
}

// Two threads add one each. The outcomes: the counters of two CPUs, and whether anybody had to try again.
template <class S>
Outcomes two_add(const Options& options, bool of_cpu) {
  Outcomes seen;
  const Result result = explore(options, [&](Execution& run) {
    Word counters[2]{};
    unsigned tries = 0;
    for (int i = 0; i < 2; ++i) run.spawn([&, of_cpu] { add_one<S>(counters, of_cpu, tries); });
    run.check([&] {
      seen.insert(std::to_string(counters[0].load()) + std::to_string(counters[1].load()) + (tries > 2 ? " again" : ""));
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  return seen;
}

TEST(Sequences, OneCpu_TwoAdd_NoneLost) { EXPECT_EQ(two_add<Sequence>(options(1), true), (Outcomes{"20", "20 again"})); }
TEST(Sequences, OneCpuEach_TwoAddToTheirOwn_NeverPreempted) {
  // No preemption, no move: no thread need try again.
  EXPECT_EQ(two_add<Sequence>(options(2, 0), true), (Outcomes{"11"}));
}
TEST(Sequences, TwoCpus_TwoAddToTheirCpus_NoneLost) {
  EXPECT_EQ(two_add<Sequence>(options(2), true), (Outcomes{"11", "11 again", "20", "20 again", "02", "02 again"}));
}
// Sequences on different CPUs do not exclude each other.
TEST(Sequences, TwoCpus_TwoAddToOneCounter_MayBeLost) {
  const Outcomes seen = two_add<Sequence>(options(2), false);
  EXPECT_TRUE(seen.contains("10"));
  EXPECT_TRUE(seen.contains("20"));
}
// A mutant that stores although it was interrupted.
struct Heedless : Sequence {
  static bool goes_on() noexcept { return true; }
  static bool commit(Word& to, unsigned value) noexcept {
    if (!Sequence::commit(to, value)) to.store(value, Order::relaxed);
    return true;
  }
};
TEST(Sequences, OneCpu_AbortIgnored_Lost) { EXPECT_TRUE(two_add<Heedless>(options(1), true).contains("10")); }

TEST(Sequences, OneThread_InterruptedInPlace_TriesAgain) {
  Outcomes seen;
  const Result result = explore(options(1, 1), [&](Execution& run) {
    Word counters[1]{};
    unsigned tries = 0;
    run.spawn([&] { add_one<Sequence>(counters, true, tries); });
    run.check([&] { seen.insert(std::to_string(counters[0].load()) + " by " + std::to_string(tries)); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(seen, (Outcomes{"1 by 1", "1 by 2"}));
}

// A store before the commit is not made either, once the sequence is over.
TEST(Sequences, InterruptedBeforeAStore_NotStored) {
  const Result result = explore(options(1), [&](Execution& run) {
    Word first, second;
    for (unsigned i = 1; i < 3; ++i) {
      run.spawn([&, i] {
        const Sequence sequence;
        if (sequence.store(first, i)) (void)sequence.commit(second, i);
      });
    }
    // The thread that committed last had made its first store last, but a later one that never committed may have made its
    // own.
    run.check([&] { SIM_CHECK(second.load() == 0 || first.load() != 0); });
  });
  EXPECT_TRUE(result.ok()) << result;
}

// On one CPU, what a sequence committed, and what was done before it, is visible to the next one: no order is needed.
Result hand_over(unsigned cpus) {
  return explore(options(cpus), [&](Execution& run) {
    SimAtomics::var<unsigned> data{0};
    Word flag{0};
    run.spawn([&] {
      data.store(1);
      for (;;) {
        const Sequence sequence;
        if (sequence.commit(flag, 1u)) return;
      }
    });
    run.spawn([&] {
      const Sequence sequence;
      if (flag.load(Order::relaxed) == 1 && sequence.goes_on()) SIM_CHECK(data.load() == 1);
    });
    run.check([] {});
  });
}
TEST(Sequences, OneCpu_DataHandedOver_Visible) {
  const Result result = hand_over(1);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Sequences, TwoCpus_DataHandedOver_Race) { EXPECT_EQ(hand_over(2).failure, Failure::kRace); }

// ---- CPUs

Outcomes cpus_seen(const Options& options) {
  Outcomes seen;
  const Result result = explore(options, [&](Execution& run) {
    std::string cpus[2];
    std::string* const places = cpus;
    for (unsigned i = 0; i < 2; ++i) {
      run.spawn([=] {
        const unsigned first = SimAtomics::cpu_id(), second = SimAtomics::cpu_id();
        places[i] = std::to_string(first) + std::to_string(second);
      });
    }
    run.check([&] { seen.insert(cpus[0] + " " + cpus[1]); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.asked_cpu);
  return seen;
}
TEST(Cpus, OneForEachThread_NobodyMoves) { EXPECT_EQ(cpus_seen(options(0)), (Outcomes{"00 11"})); }
TEST(Cpus, OneForAll_NobodyMoves) { EXPECT_EQ(cpus_seen(options(1)), (Outcomes{"00 00"})); }
TEST(Cpus, Two_NoPreemption_NobodyMoves) { EXPECT_EQ(cpus_seen(options(2, 0)), (Outcomes{"00 11"})); }
TEST(Cpus, Two_OnePreemption_OneMove) {
  EXPECT_EQ(cpus_seen(options(2, 1)), (Outcomes{"00 11", "11 11", "01 11", "00 00", "00 10"}));
}
TEST(Cpus, Two_ManyPreemptions_EverybodyAnywhere) { EXPECT_EQ(cpus_seen(options(2, 4)).size(), 16u); }
TEST(Cpus, NobodyAsks_NothingMore) {
  const auto count = [](unsigned cpus) {
    return explore(options(cpus),
                   [](Execution& run) {
                     Word word;
                     for (int i = 0; i < 2; ++i) run.spawn([&] { word.fetch_add(1); });
                     run.check([&] { SIM_CHECK(word.load() == 2); });
                   })
        .executions;
  };
  EXPECT_EQ(count(0), count(2));
}

TEST(Sequences, MoveInASequence_ReplaysAlike) {
  const auto scenario = [](Execution& run) {
    Word counters[2]{};
    unsigned tries = 0;
    for (int i = 0; i < 2; ++i) run.spawn([&] { add_one<Heedless>(counters, true, tries); });
    run.check([&] { SIM_CHECK(counters[0].load() + counters[1].load() == 2); });
  };
  const Result result = explore(options(2), scenario);
  EXPECT_EQ(result.failure, Failure::kCheck) << result;
  EXPECT_NE(result.trace.find("abort"), std::string::npos) << result;
}

}  // namespace
}  // namespace freehold::sim
