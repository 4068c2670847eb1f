// SPDX-License-Identifier: MIT
// sync::ForkGate and alloc::DeferredList on the simulated machine. Threads change two words that belong together, under a
// lock, as the engine's slow paths do; others fork. Oracle: at the moment of the copy the words agree and no lock is held;
// no thread waits for ever, even if fork waits for a lock whose holder wants memory; nothing that was put off is left
// behind.
#include <gtest/gtest.h>

#include "freehold/alloc/process/fork_work.hpp"
#include "freehold/sync/fork_gate.hpp"
#include "freehold/sync/lock.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using sim::Failure;
using sim::SimAtomics;

struct Note {
  Note* next = nullptr;
  bool done = false;
};

// The engine, and what fork does with it.
template <class A = SimAtomics, class Orders = sync::ForkGateOrders, class DeferredOrders = alloc::DeferredOrders>
class World {
 public:
  using Gate = sync::ForkGate<A, Orders, 2>;
  using Mark = typename Gate::Mark;

  World() { gate_.init(); }

  // A thread's slow path. False: it was refused.
  bool change(Mark* own, std::uint32_t forks = 0) {
    Mark& mark = own != nullptr ? *own : gate_.shared_mark(0);
    if (!(own != nullptr ? gate_.enter(mark, forks) : gate_.enter_shared(mark, forks))) return false;
    {
      const sync::Guard guard(engine_);
      locked_.store(true);
      left_.store(left_.load() + 1);
      right_.store(right_.load() + 1);
      locked_.store(false);
    }
    own != nullptr ? gate_.leave(mark) : gate_.leave_shared(mark);
    return true;
  }
  // A free, which is put off where it is refused.
  void free(Mark& own, Note& note) {
    if (change(&own)) {
      note.done = true;
      return;
    }
    deferred_.push(&note);
    if (gate_.forks() == 0) run_deferred();
  }

  void before_fork(const Mark* mine = nullptr) {
    gate_.close();
    for (const Mark& mark : marks) {
      if (&mark == mine) continue;
      while (!Gate::is_quiet(mark)) A::yield();
    }
    while (!gate_.shared_marks_are_quiet()) A::yield();
  }
  void confine() { gate_.fence_alone(); }
  void copy() {
    SIM_CHECK(left_.load() == right_.load());
    SIM_CHECK(!locked_.load());
  }
  void after_fork() {
    if (gate_.open()) run_deferred();
  }

  Mark marks[3]{};
  sync::Mutex<A> others_lock;  // a lock of a library or of libc: fork takes it, and so do threads that allocate under it
  unsigned changes() { return static_cast<unsigned>(left_.load()); }

 private:
  void run_deferred() {
    for (Note *note = deferred_.take_all(), *next = nullptr; note != nullptr; note = next) {
      next = note->next;
      note->done = true;
    }
  }

  Gate gate_;
  sync::Mutex<A> engine_;
  alloc::DeferredList<A, Note, &Note::next, DeferredOrders> deferred_;
  typename A::template var<unsigned> left_{0}, right_{0};
  typename A::template var<bool> locked_{false};
};

using Orders = sync::ForkGateOrders;

template <bool kSharedMarks, class A = SimAtomics, class O = Orders, class P = alloc::DeferredOrders>
void copy_amid_changes(sim::Execution& run) {
  World<A, O, P> world;
  for (unsigned t = 0; t < 2; ++t)
    run.spawn([&, t] {
      for (unsigned i = 0; i <= t; ++i) (void)world.change(kSharedMarks ? nullptr : &world.marks[t]);
    });
  run.spawn([&] {
    world.before_fork();
    world.copy();
    world.after_fork();
  });
  run.check([&] { SIM_CHECK(world.changes() <= 3); });
}

// Fork waits for a lock that a thread holds while it allocates. `kWaits`: the mutant, in which a refused thread waits.
template <bool kWaits>
void copy_behind_anothers_lock(sim::Execution& run) {
  World<> world;
  run.spawn([&] {
    const sync::Guard guard(world.others_lock);
    while (!world.change(&world.marks[0]) && kWaits) SimAtomics::yield();
  });
  run.spawn([&] { (void)world.change(&world.marks[1]); });
  run.spawn([&] {
    world.before_fork();
    world.others_lock.lock();
    world.copy();
    world.others_lock.unlock();
    world.after_fork();
  });
  run.check([&] { SIM_CHECK(world.changes() >= (kWaits ? 1 : 0)); });
}

// Two threads fork, and their handlers allocate.
void two_forks(sim::Execution& run) {
  World<> world;
  for (unsigned t = 0; t < 2; ++t)
    run.spawn([&, t] {
      world.before_fork(&world.marks[t]);
      (void)world.change(&world.marks[t], 1);
      world.copy();
      world.after_fork();
    });
  run.check([&] { SIM_CHECK(world.change(&world.marks[2])); });
}

template <class A = SimAtomics, class O = Orders, class P = alloc::DeferredOrders>
void put_off_frees(sim::Execution& run) {
  World<A, O, P> world;
  Note notes[2];
  for (unsigned t = 0; t < 2; ++t) run.spawn([&, t] { world.free(world.marks[t], notes[t]); });
  run.spawn([&] {
    world.before_fork();
    world.copy();
    world.after_fork();
  });
  run.check([&] { SIM_CHECK(notes[0].done && notes[1].done); });
}

// The process confines itself in the middle of this: no thread may fence others afterwards.
void copy_amid_confinement(sim::Execution& run) {
  World<> world;
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) (void)world.change(&world.marks[0]);
  });
  run.spawn([&] { world.confine(); });
  run.spawn([&] {
    world.before_fork();
    world.copy();
    world.after_fork();
  });
  run.check([&] { SIM_CHECK(world.changes() <= 2); });
}

TEST(ForkGate_Model, EveryScenario_TheCopyIsWholeAndNobodyWaitsForEver) {
  sim::expect_all_ok("fork",
                     {{{.name = "own", .preemptions = 3, .stale = 2}, copy_amid_changes<false>},
                      {{.name = "shared", .preemptions = 3}, copy_amid_changes<true>},
                      {{.name = "confined", .preemptions = 3, .stale = 2}, copy_amid_confinement},
                      {{.name = "lock", .preemptions = 3}, copy_behind_anothers_lock<false>},
                      {{.name = "two", .preemptions = 3}, two_forks},
                      {{.name = "put off", .preemptions = 3}, put_off_frees<>},
                      // If the kernel cannot fence other threads, each fences for itself.
                      {{.name = "fences", .preemptions = 3, .stale = 2}, copy_amid_changes<false, model::NoMembarrier>}});
}

// ---- mutants

FREEHOLD_WEAKER(LeavesRelaxed, Orders, kLeave, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, Orders, kLook, relaxed);
FREEHOLD_WEAKER(OpensRelaxed, Orders, kOpen, relaxed);
FREEHOLD_WEAKER(EntersRelaxed, Orders, kEnter, relaxed);
FREEHOLD_WEAKER(PushesWithoutLooking, alloc::DeferredOrders, kPush, release);
FREEHOLD_WEAKER(TakesWithoutTelling, alloc::DeferredOrders, kTake, acquire);
struct NoFenceAtAll : model::NoMembarrier {
  static void fence(std::memory_order) noexcept {}
};

Failure failure_of(void (*scenario)(sim::Execution&)) {
  return sim::first_failure("fork", {{{.name = "mutant", .preemptions = 3, .stale = 2, .steps = 2000}, scenario}}, 3);
}

TEST(ForkGate_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ(failure_of(copy_amid_changes<false, model::NoHeavyFence>), Failure::kRace);
  EXPECT_EQ(failure_of(copy_amid_changes<false, NoFenceAtAll>), Failure::kRace);
  EXPECT_EQ((failure_of(copy_amid_changes<false, SimAtomics, LeavesRelaxed>)), Failure::kRace);
  EXPECT_EQ((failure_of(copy_amid_changes<false, SimAtomics, LooksRelaxed>)), Failure::kRace);
  // A thread comes in after the fork: it may not change what the copy still reads.
  EXPECT_EQ((failure_of(copy_amid_changes<false, SimAtomics, EntersRelaxed>)), Failure::kRace);
  EXPECT_EQ((failure_of(copy_amid_changes<false, SimAtomics, OpensRelaxed>)), Failure::kRace);
  EXPECT_EQ((failure_of(put_off_frees<SimAtomics, Orders, PushesWithoutLooking>)), Failure::kCheck);
  EXPECT_EQ((failure_of(put_off_frees<SimAtomics, Orders, TakesWithoutTelling>)), Failure::kCheck);
}
// Locks that are taken in the handler lead to this.
TEST(ForkGate_Mutants, RefusedThreadWaits_NobodyGoesOn) {
  EXPECT_EQ(failure_of(copy_behind_anothers_lock<true>), Failure::kLivelock);
}

}  // namespace
}  // namespace freehold
