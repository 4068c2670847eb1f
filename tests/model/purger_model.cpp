// SPDX-License-Identifier: MIT
// alloc::PurgerState on the simulated machine, with what is due as the arena keeps it: a bit in a set, and a note that
// something is due. Oracle: freed memory goes back although no thread frees afterwards (a purger that sleeps beside it would
// make the thread that waits for it wait for ever). Of the threads that end the purger each comes back, one of them having
// joined it, and what the starter wrote is visible to the purger and to the joiner.
#include <gtest/gtest.h>

#include "freehold/alloc/return/purger_state.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using alloc::Due;
using sim::Failure;

// Time passes whenever a thread waits for it.
struct Atomics : sim::SimAtomics {
  template <class T>
  static void wait_shared(const atomic<T>& a, T old, std::uint64_t nanoseconds = sync::kForever) noexcept {
    if (nanoseconds == sync::kForever) sim::SimAtomics::wait_shared(a, old);
  }
};

struct Shipped : alloc::PurgerOrders {
  static constexpr bool kClearsFirst = true;  // the note, before it looks at what is due
  static constexpr bool kForbidsMore = true;  // the thread that confines the process, before it waits
  static constexpr auto kAskNote = std::memory_order_seq_cst;
  static constexpr auto kClearNote = std::memory_order_seq_cst;
};

template <class Traits>
class World {
 public:
  using A = Atomics;

  // As DueNote::note() and Inside do it: what is due, the note, the purger.
  void free(unsigned bit) {
    due_.fetch_or(1U << bit, std::memory_order_seq_cst);
    if (!note_.load(Traits::kAskNote)) note_.store(true, std::memory_order_seq_cst);
    if (note_.load(std::memory_order_relaxed)) state_.wake();
  }
  Due step() {
    if (Traits::kClearsFirst) note_.store(false, Traits::kClearNote);
    // As a search does it: it reads, and takes only what it found.
    unsigned taken = due_.load(std::memory_order_seq_cst);
    if (taken != 0) taken = due_.exchange(0, std::memory_order_seq_cst);
    gone_.fetch_or(taken, std::memory_order_relaxed);
    if (!Traits::kClearsFirst) note_.store(false, std::memory_order_seq_cst);
    return taken != 0 ? Due::kLater : Due::kNothing;
  }
  void start() {
    begin();
    go_on_starting();
  }
  void run() {
    state_.wait_for_start();
    SIM_CHECK(stack_.load() == 1);
    state_.run([this] { return step(); }, 1);
    ended_.store(true, std::memory_order_release);
  }
  void give_up() {
    state_.wait_for_start();
    SIM_CHECK(stack_.load() == 1);
    state_.give_up_cramped();
    ended_.store(true, std::memory_order_release);
  }
  // Before there is a thread: pthread_create() tells it so much.
  void begin() { SIM_CHECK(state_.begin() == State::Begun::kYes); }
  void go_on_starting() {
    stack_.store(1);
    state_.started(true);
  }
  // If it has given up by now.
  bool join_and_start() {
    if (state_.begin() != State::Begun::kCramped) return false;
    SIM_CHECK(stack_.load() == 1);  // with its handle: needed to join it
    while (!ended_.load(std::memory_order_acquire)) A::yield();
    stack_.store(2);
    state_.started(true);
    return true;
  }
  bool end() {
    return state_.end([this] {
      while (!ended_.load(std::memory_order_acquire)) A::yield();
      SIM_CHECK(stack_.load() == 1);
      stack_.store(0);
    });
  }
  void wait_until_gone(unsigned bits) {
    while ((gone_.load(std::memory_order_relaxed) & bits) != bits) A::yield();
  }
  [[nodiscard]] bool exists() const { return state_.exists(); }

 private:
  using State = alloc::PurgerState<A, Traits>;
  State state_;
  A::atomic<unsigned> due_{0}, gone_{0};
  A::atomic<bool> note_{false}, ended_{false};
  A::var<int> stack_{0};
};

// Two threads free; the one that is ready last ends the purger.
template <class Traits>
void frees_then_end(sim::Execution& run) {
  World<Traits> world;
  world.begin();
  run.spawn([&] { world.run(); });
  run.spawn([&] {
    world.go_on_starting();
    world.free(0);
    world.wait_until_gone(3);
    SIM_CHECK(world.end());
    SIM_CHECK(!world.exists());
  });
  run.spawn([&] { world.free(1); });
  run.check([&] { SIM_CHECK(!world.exists()); });
}

// The purger sleeps already when the free comes, or is about to.
template <class Traits>
void free_beside_falling_asleep(sim::Execution& run) {
  World<Traits> world;
  world.start();
  run.spawn([&] { world.run(); });
  run.spawn([&] {
    world.free(0);
    world.wait_until_gone(1);
    (void)world.end();
  });
  run.check([&] { SIM_CHECK(!world.exists()); });
}

// The thread gives up; the thread that starts the next one joins it.
template <class Traits>
void gives_up(sim::Execution& run) {
  World<Traits> world;
  world.begin();
  run.spawn([&] { world.give_up(); });
  run.spawn([&] { world.go_on_starting(); });
  bool joined = false;
  run.spawn([&] { joined = world.join_and_start(); });
  run.check([&] { SIM_CHECK(world.exists() == joined); });
}

// One thread starts it, another ends it.
template <class Traits>
void anothers_end(sim::Execution& run) {
  World<Traits> world;
  world.begin();
  run.spawn([&] { world.run(); });
  run.spawn([&] { world.go_on_starting(); });
  run.spawn([&] { SIM_CHECK(world.end()); });
  run.check([&] { SIM_CHECK(!world.exists()); });
}

template <class Traits>
void two_end_it(sim::Execution& run) {
  World<Traits> world;
  bool joined[2] = {};
  world.start();
  run.spawn([&] { world.run(); });
  for (bool& mine : joined)
    run.spawn([&] {
      mine = world.end();
      SIM_CHECK(!world.exists());
    });
  run.check([&] { SIM_CHECK(joined[0] != joined[1]); });
}

// A thread that starts the purger, the purger at its beginning, and a thread that confines the process.
template <class Traits>
void confined_amid_the_start(sim::Execution& run) {
  struct Shared {
    alloc::OtherCalls<Atomics> calls;
    Atomics::atomic<bool> confined{false}, filtered{false};
    Atomics::atomic<unsigned> created{0};
    void call() { SIM_CHECK(!filtered.load(std::memory_order_relaxed)); }
  } shared;
  run.spawn([&] {
    shared.calls.begin();
    if (!shared.confined.load(std::memory_order_relaxed)) {
      shared.calls.begin();
      shared.created.store(1, std::memory_order_release);
      shared.call();
    } else {
      shared.created.store(2, std::memory_order_relaxed);
    }
    Atomics::notify_all_shared(shared.created);
    shared.calls.end();
  });
  run.spawn([&] {
    unsigned created = 0;
    while ((created = shared.created.load(std::memory_order_acquire)) == 0) Atomics::wait_shared(shared.created, 0U);
    if (created == 2) return;
    shared.call();
    shared.calls.end();
  });
  run.spawn([&] {
    shared.confined.store(true, std::memory_order_relaxed);
    if (Traits::kForbidsMore) shared.calls.forbid_more();
    while (!shared.calls.are_over()) Atomics::yield();
    shared.filtered.store(true, std::memory_order_relaxed);
  });
  run.check([&] { SIM_CHECK(shared.calls.are_over()); });
}

template <class Traits>
sim::Scenarios scenarios() {
  return {{{.name = "asleep", .preemptions = 4, .stale = 2}, free_beside_falling_asleep<Traits>},
          {{.name = "cramped", .preemptions = 2}, gives_up<Traits>},
          {{.name = "confined", .preemptions = 2}, confined_amid_the_start<Traits>},
          {{.name = "another", .preemptions = 2}, anothers_end<Traits>},
          {{.name = "end", .preemptions = 3}, two_end_it<Traits>},
          {{.name = "frees", .preemptions = 2}, frees_then_end<Traits>}};
}
TEST(Purger_Model, EveryScenario_EverythingGoesBackAndNobodyWaits) { sim::expect_all_ok("purger", scenarios<Shipped>()); }

// ---- mutants

FREEHOLD_WEAKER(AsksTheNoteRelaxed, Shipped, kAskNote, relaxed);
FREEHOLD_WEAKER(ClearsTheNoteRelaxed, Shipped, kClearNote, relaxed);
struct ClearsTheNoteLast : Shipped {
  static constexpr bool kClearsFirst = false;
};
FREEHOLD_WEAKER(StartedRelaxed, Shipped, kStarted, relaxed);
FREEHOLD_WEAKER(SeesStartedRelaxed, Shipped, kSeeStarted, relaxed);
FREEHOLD_WEAKER(TakesOverRelaxed, Shipped, kTakeOver, relaxed);

struct WaitsWithoutAFence : Shipped {
  static constexpr bool kForbidsMore = false;
};

TEST(Purger_Mutants, EachAlone_IsNoticed) {
  EXPECT_NE(sim::first_failure("purger", scenarios<WaitsWithoutAFence>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<AsksTheNoteRelaxed>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<ClearsTheNoteRelaxed>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<ClearsTheNoteLast>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<StartedRelaxed>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<SeesStartedRelaxed>(), 3), Failure::kNone);
  EXPECT_NE(sim::first_failure("purger", scenarios<TakesOverRelaxed>(), 3), Failure::kNone);
}

}  // namespace
}  // namespace freehold
