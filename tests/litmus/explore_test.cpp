// SPDX-License-Identifier: MIT
// The exploration itself: it finds what it must find, says how to see it again, and its reduction loses no outcome.
#include "sim/explore.hpp"
#include "freehold/base/check.hpp"
#include "sim/sim_atomics.hpp"
#include "sim/strategy.hpp"
#include "tests/litmus/machine.hpp"
#include "tests/support/test.hpp"

namespace freehold::sim {
namespace {

using A = SimAtomics;
using Word = A::atomic<std::uint32_t>;
constexpr Order kRelaxed = Order::relaxed, kAcquire = Order::acquire, kRelease = Order::release;

// A counter incremented by load and store: the simplest lost update.
void lost_update(Execution& run) {
  Word counter{0};
  for (int i = 0; i < 2; ++i) {
    run.spawn([&] { counter.store(counter.load(kRelaxed) + 1, kRelaxed); });
  }
  run.check([&] { SIM_CHECK(counter.load(kRelaxed) == 2); });
}

TEST(Explore, LostUpdate_OnePreemption_Found) {
  const Result result = explore({.name = "lost", .preemptions = 1, .stale = 0}, lost_update);
  EXPECT_EQ(result.failure, Failure::kCheck) << result;
  EXPECT_NE(result.message.find("counter.load"), std::string::npos);
  EXPECT_FALSE(result.ok());
}
TEST(Explore, LostUpdate_NoPreemptionNoStaleRead_NotFound) {
  const Result result = explore({.name = "lost", .preemptions = 0, .stale = 0}, lost_update);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Explore, LimitOfExecutions_Reached_NotComplete) {
  const Result result = explore({.name = "limit", .preemptions = 0, .executions = 1}, lost_update);
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.failure, Failure::kNone);
  EXPECT_FALSE(result.ok());
}

TEST(Replay, Failure_Replayed_SameMessageAndTrace) {
  const Result found = explore({.name = "to replay", .preemptions = 2}, lost_update);
  ASSERT_EQ(found.failure, Failure::kCheck);
  setenv("FREEHOLD_REPLAY", found.replay.c_str(), 1);
  testing::internal::CaptureStdout();
  const Result again = explore({.name = "to replay", .preemptions = 2}, lost_update);
  const Result other = explore({.name = "another", .preemptions = 0, .stale = 0}, lost_update);
  const std::string printed = testing::internal::GetCapturedStdout();
  unsetenv("FREEHOLD_REPLAY");
  EXPECT_EQ(again.executions, 1u);
  EXPECT_EQ(again.message, found.message);
  EXPECT_EQ(again.trace, found.trace);
  EXPECT_NE(printed.find("explore_test.cpp"), std::string::npos) << printed;
  EXPECT_NE(printed.find("store"), std::string::npos) << printed;
  EXPECT_TRUE(other.ok()) << other;
}
TEST(Replay, AnswersOfARun_ToTextAndBack_Same) {
  const Answers answers = {0, 0, 0, 2, 1, 1, 0};
  EXPECT_EQ(to_string(answers), "a3cb2a");
  EXPECT_EQ(parse_answers("a3cb2a"), answers);
  EXPECT_THROW(parse_answers("a3-"), std::invalid_argument);
}

TEST(Failures, WaitWithoutNotify_Deadlock) {
  const Result result = explore({.name = "deadlock", .stale = 0}, [](Execution& run) {
    Word word{0};
    run.spawn([&] {
      while (word.load(kAcquire) == 0) A::wait(word, 0);
    });
    run.spawn([&] { word.store(1, kRelease); });
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kDeadlock) << result;
  EXPECT_NE(result.message.find("T0 waits at explore_test.cpp"), std::string::npos) << result;
}
TEST(Failures, NotifyOneForTwoSleepers_DeadlockAndEitherIsWoken) {
  std::set<unsigned> woken;
  const Result result = explore({.name = "one of two", .stale = 0}, [&](Execution& run) {
    Word word{0};
    for (unsigned i = 0; i < 2; ++i) {
      run.spawn([&] {
        while (word.load(kAcquire) == 0) A::wait(word, 0);
        if (word.fetch_add(1, kRelaxed) == 1) woken.insert(thread_index());
        A::notify_one(word);
      });
    }
    run.spawn([&] {
      word.store(1, kRelease);
      A::notify_one(word);
    });
    run.check([] {});
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(woken, (std::set<unsigned>{0, 1}));
}
TEST(Failures, SpinForEver_Livelock) {
  const Result result = explore({.name = "livelock", .steps = 1000}, [](Execution& run) {
    Word word{0};
    for (int i = 0; i < 2; ++i) {
      run.spawn([&] {
        while (word.load(kAcquire) == 0) A::pause();
      });
    }
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kLivelock) << result;
}
TEST(Failures, FatalInAThread_IsAFailure) {
  const Result result = explore({.name = "fatal"}, [](Execution& run) {
    run.spawn([] { base::fatal(base::HeapError::kDoubleFree, nullptr); });
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kCheck);
  EXPECT_EQ(result.message, "fatal: double free");
}
TEST(Failures, ScenarioThatCountsItsRuns_NotDeterministic) {
  int runs = 0;
  const Result result = explore({.name = "random"}, [&](Execution& run) {
    Word word{0};
    const int stores = ++runs % 3;
    for (int t = 0; t < 2; ++t) {
      run.spawn([&] {
        for (int i = 0; i < stores; ++i) word.store(1, kRelaxed);
      });
    }
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kScenario) << result;
}
TEST(Failures, AtomicChangedByPlainWrite_Noticed) {
  const Result result = explore({.name = "behind"}, [](Execution& run) {
    Word word{0};
    run.spawn([&] {
      word.store(1, kRelaxed);
      *reinterpret_cast<std::uint32_t*>(&word) = 2;
      static_cast<void>(word.load(kRelaxed));
    });
    run.check([] {});
  });
  EXPECT_EQ(result.failure, Failure::kScenario) << result;
}
TEST(Failures, AtomicUsedBeforeItsConstructionHappened_Race) {
  const auto scenario = [](Order publish) {
    return [=](Execution& run) {
      alignas(Word) std::byte memory[sizeof(Word)] = {};
      A::atomic<std::uint32_t*> pointer{nullptr};
      run.spawn([&] { pointer.store(reinterpret_cast<std::uint32_t*>(new (memory) Word(5)), publish); });
      run.spawn([&] {
        auto* word = reinterpret_cast<Word*>(pointer.load(kAcquire));
        if (word != nullptr) SIM_CHECK(word->load(kRelaxed) == 5);
      });
      run.check([] {});
    };
  };
  EXPECT_EQ(explore({.name = "construct"}, scenario(kRelaxed)).failure, Failure::kRace);
  EXPECT_TRUE(explore({.name = "construct, released"}, scenario(kRelease)).ok());
}

TEST(Choices, Decide_BothAreExplored) {
  std::set<unsigned> seen;
  const Result result = explore({.name = "decide"}, [&](Execution& run) {
    unsigned value = 0;
    run.spawn([&] { value = A::decide(64u, 1u) + A::decide(7u, 7u); });
    run.check([&] { seen.insert(value); });
  });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(seen, (std::set<unsigned>{71, 8}));
}

// Random programs: with the reduction and without, under every budget, the same outcomes.
TEST(Reduction, RandomPrograms_SameOutcomesWithFewerExecutions) {
  litmus::RandomPrograms programs(1);
  std::uint64_t reduced = 0, full = 0;
  for (int i = 0; i < 300; ++i) {
    const litmus::Program program = programs.next();
    Options options{.name = "program", .preemptions = i % 4u, .stale = i / 4 % 3u, .print = false};
    const auto with = litmus::shown_by_machine(program, options);
    options.reduction = false;
    const auto without = litmus::shown_by_machine(program, options);
    ASSERT_TRUE(with.result.ok() && without.result.ok()) << litmus::text(program);
    ASSERT_EQ(with.outcomes, without.outcomes) << litmus::text(program);
    reduced += with.result.executions;
    full += without.result.executions;
  }
  EXPECT_LT(reduced, full);
  std::printf("[ explored ] 300 programs: %llu executions instead of %llu\n", static_cast<unsigned long long>(reduced),
              static_cast<unsigned long long>(full));
}

}  // namespace
}  // namespace freehold::sim
