// SPDX-License-Identifier: MIT
// alloc::LookTurn on the simulated machine. Oracle: what a thread does in its turn is free of races with the next turn and
// with threads that waited. Beside a thread that is stopped in its turn no thread waits a second time. Every turn is waited
// for, unless a thread has waited for it in vain.
#include "freehold/alloc/return/look_turn.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold {
namespace {

using alloc::LookTurn;
using alloc::LookTurnOrders;
using sim::Failure;
using sim::Result;
using sim::SimAtomics;

// Each thread takes the turn, or waits for the other and reads what that did.
template <class Orders>
Result looks_or_waits(const sim::Options& options) {
  return sim::explore(options, [](sim::Execution& run) {
    LookTurn<SimAtomics, Orders> turn;
    SimAtomics::var<unsigned> looks{0};
    for (unsigned i = 0; i < 2; ++i)
      run.spawn([&] {
        if (turn.try_begin()) {
          looks.store(looks.load() + 1);
          return turn.end();
        }
        turn.wait([](auto is_free) {
          sync::wait_until<SimAtomics>(is_free);
          return true;
        });
        SIM_CHECK(looks.load() == 1);
      });
    run.check([&] { SIM_CHECK(turn.try_begin()); });
  });
}

TEST(LookTurn_Model, TwoThreads_OneLooksAtATimeAndTheOtherSeesIt) {
  expect_ok(looks_or_waits<LookTurnOrders>({.name = "look_turn/two", .preemptions = 4, .stale = 2}));
}

// A thread has one turn, and is stopped in its second. Two others come by twice, and ask once whether it is over. No reads
// are stale here: one would cost a wait, and nothing else.
TEST(LookTurn_Model, ThreadStopsInItsTurn_IsWaitedForInVainOnce) {
  constexpr unsigned kStopped = 2;
  unsigned most_waits = 0;
  const Result result = sim::explore({.name = "look_turn/stopped", .preemptions = 3, .stale = 0}, [&](sim::Execution& run) {
    LookTurn<SimAtomics> turn;
    unsigned now = 0;  // the turn that a thread has, and whether the last was waited for in vain, or that is known to all
    bool in_vain = false, is_known = false;
    unsigned waits = 0;
    run.spawn([&] {
      SIM_CHECK(turn.try_begin());
      now = 1;
      turn.end();
      SIM_CHECK(turn.try_begin());
      now = kStopped;
    });
    for (unsigned i = 0; i < 2; ++i)
      run.spawn([&] {
        for (unsigned round = 0; round < 2; ++round) {
          const bool is_stopped = now == kStopped, was_known = is_known;
          bool waited = false, mine = false;
          turn.wait([&](auto is_free) {
            waited = true;
            if (is_free()) return true;
            if (now == kStopped) in_vain = mine = true;
            return false;
          });
          waits += waited && is_stopped ? 1 : 0;
          if (was_known) SIM_CHECK(!waited);
          if (is_stopped) SIM_CHECK(waited || in_vain);
          is_known = is_known || mine;
        }
      });
    run.check([&] {
      most_waits = std::max(most_waits, waits);
      SIM_CHECK(!turn.try_begin());
      turn.reset();
      SIM_CHECK(turn.try_begin());
      turn.reset();
      turn.end();
      SIM_CHECK(turn.try_begin());
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(most_waits, 2U) << "each thread waits for it";
}

// ---- mutants

FREEHOLD_WEAKER(BeginsRelaxed, LookTurnOrders, kBegin, relaxed);
FREEHOLD_WEAKER(EndsRelaxed, LookTurnOrders, kEnd, relaxed);
FREEHOLD_WEAKER(SeesEndRelaxed, LookTurnOrders, kSeeEnd, relaxed);

TEST(LookTurn_Mutants, EachOrderAlone_IsNoticed) {
  const sim::Options options{.name = "look_turn/mutant", .preemptions = 4, .stale = 2, .print = false};
  EXPECT_NE(looks_or_waits<BeginsRelaxed>(options).failure, Failure::kNone);
  EXPECT_NE(looks_or_waits<EndsRelaxed>(options).failure, Failure::kNone);
  EXPECT_NE(looks_or_waits<SeesEndRelaxed>(options).failure, Failure::kNone);
}

}  // namespace
}  // namespace freehold
