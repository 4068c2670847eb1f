// SPDX-License-Identifier: MIT
// The remote-free lists under every interleaving within the bounds.
// The oracle: a slot's stamp is plain data that the pusher writes before the push and the taker after it. So a slot that is
// taken too early or twice is a data race. At the end every slot was taken once, or refused and kept by its pusher.
#include <gtest/gtest.h>

#include <array>

#include "freehold/thread_alloc/remote_free_list.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold::thread_alloc {
namespace {

using sim::Execution;
using sim::Failure;
using sim::SimAtomics;

// A slot and what became of it.
template <class Node>
struct Slot {
  enum Stamp : unsigned { kFresh, kPushed, kTaken, kRefused };
  Node node;
  SimAtomics::var<Stamp> stamp{kFresh};

  void move(Stamp from, Stamp to) {
    SIM_CHECK(stamp.load() == from);
    stamp.store(to);
  }
};

template <class List>
struct Scene {
  using Node = typename List::Node;
  using S = Slot<Node>;
  List list;
  std::array<S, 6> slots;
  SimAtomics::var<unsigned> owners_books{0};  // written by the owner until it closes the list, then by threads that see that

  // Pushes slots [first, first + n), linked; refused ones are marked so.
  bool push(unsigned first, unsigned n) {
    for (unsigned i = first; i < first + n; ++i) {
      slots[i].move(S::kFresh, S::kPushed);
      if (i > first) slots[i - 1].node.next.store(&slots[i].node);
    }
    if (list.push(&slots[first].node, &slots[first + n - 1].node, n)) return true;
    for (unsigned i = first; i < first + n; ++i) slots[i].move(S::kPushed, S::kRefused);
    return false;
  }
  void take(Node* node) {
    unsigned n = 0;
    while (node != nullptr) {
      SIM_CHECK(++n <= slots.size());
      Node* const next = node->next.load();
      reinterpret_cast<S*>(node)->move(S::kPushed, S::kTaken);
      node = next;
    }
  }
  unsigned count(typename S::Stamp stamp) {
    unsigned n = 0;
    for (S& slot : slots) n += slot.stamp.load() == stamp ? 1 : 0;
    return n;
  }
};

// Two batches against two drains.
template <class List>
void push_and_drain(Execution& run) {
  Scene<List> scene;
  run.spawn([&] {
    SIM_CHECK(scene.push(0, 2));
    SIM_CHECK(scene.push(2, 1));
  });
  run.spawn([&] {
    scene.take(scene.list.drain());
    scene.take(scene.list.drain());
  });
  run.check([&] {
    scene.take(scene.list.drain());
    SIM_CHECK(scene.count(Slot<typename List::Node>::kTaken) == 3);
    SIM_CHECK(!scene.list.ready(1));
  });
}

// Two pushers, a batch and a slot each, against drains that come when the list seems ready.
template <class List>
void two_pushers_and_drain(Execution& run) {
  Scene<List> scene;
  run.spawn([&] { SIM_CHECK(scene.push(0, 2)); });
  run.spawn([&] {
    SIM_CHECK(scene.push(2, 1));
    SIM_CHECK(scene.push(3, 1));
  });
  run.spawn([&] {
    if (scene.list.ready(1)) scene.take(scene.list.drain());
    scene.take(scene.list.drain());
  });
  run.check([&] {
    scene.take(scene.list.drain());
    SIM_CHECK(scene.count(Slot<typename List::Node>::kTaken) == 4);
  });
}

// Two pushers against the owner that drains, closes and leaves its books to pushers that come too late.
template <class List>
void two_pushers_and_close(Execution& run) {
  Scene<List> scene;
  using S = Slot<typename List::Node>;
  for (unsigned i = 0; i < 2; ++i) {
    run.spawn([&, i] {
      const bool early = scene.push(2 * i, 1);
      const bool late = scene.push(2 * i + 1, 1);
      SIM_CHECK(early || !late);
      if (!late) SIM_CHECK(scene.owners_books.load() == 1);
    });
  }
  run.spawn([&] {
    scene.take(scene.list.drain());
    scene.owners_books.store(1);
    scene.take(scene.list.close());
  });
  run.check([&] {
    SIM_CHECK(scene.count(S::kTaken) + scene.count(S::kRefused) == 4);
    scene.list.reopen();
    SIM_CHECK(scene.list.drain() == nullptr);
    SIM_CHECK(scene.push(4, 1));
  });
}

template <class List>
sim::Scenarios scenarios(unsigned preemptions_of_three, unsigned stale_of_three) {
  return {
      {{.name = "push, drain", .preemptions = 5, .stale = 2}, push_and_drain<List>},
      {{.name = "2 push, drain", .preemptions = preemptions_of_three, .stale = stale_of_three}, two_pushers_and_drain<List>},
      {{.name = "2 push, close", .preemptions = preemptions_of_three, .stale = stale_of_three},
       two_pushers_and_close<List>}};
}
TEST(RemoteFreeList_Model, LockFree_EverySlotTakenOnceOrRefused) {
  sim::expect_all_ok("remote_free/lock-free", scenarios<LockFreeList<SimAtomics>>(4, 2));
}
// The mutex spins, sleeps and wakes besides: three threads on it take the smallest bounds.
TEST(RemoteFreeList_Model, Mutex_EverySlotTakenOnceOrRefused) {
  sim::expect_all_ok("remote_free/mutex", scenarios<MutexPendingList<SimAtomics>>(2, 0));
}

// ---- mutants

template <class List>
Failure killed() {
  return sim::first_failure("remote_free", scenarios<List>(2, 0), 2);
}

// These weaken the lock-free list's orders.
FREEHOLD_WEAKER(PushRelaxed, LockFreeListOrders, kPush, relaxed);
FREEHOLD_WEAKER(SeeClosedRelaxed, LockFreeListOrders, kSeeClosed, relaxed);
FREEHOLD_WEAKER(TakeRelaxed, LockFreeListOrders, kTake, relaxed);
FREEHOLD_WEAKER(CloseAcquires, LockFreeListOrders, kClose, acquire);
FREEHOLD_WEAKER(CloseReleases, LockFreeListOrders, kClose, release);
template <class Orders>
using Ordered = LockFreeList<SimAtomics, Orders>;

TEST(RemoteFreeList_Mutants, LockFreeOrdersWeakened_Race) {
  EXPECT_EQ(killed<Ordered<PushRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<SeeClosedRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<TakeRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<CloseAcquires>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<CloseReleases>>(), Failure::kRace);
}

// Tears the lock-free list's steps: a read-modify-write in two halves.
TEST(RemoteFreeList_Mutants, LockFreeStepsTorn_SlotLostOrTakenTwice) {
  EXPECT_NE(killed<LockFreeList<model::Tearing<model::kExchange>>>(), Failure::kNone);
  EXPECT_NE(killed<LockFreeList<model::Tearing<model::kCompareExchange>>>(), Failure::kNone);
}

// Weakens the mutex list's lock, or leaves it out.
template <class Orders>
using Locked = MutexPendingList<SimAtomics, sync::Mutex<SimAtomics, sync::CountWaits<SimAtomics>, Orders>>;
FREEHOLD_WEAKER(RelaxedTake, sync::MutexOrders, kTake, relaxed);
FREEHOLD_WEAKER(RelaxedGive, sync::MutexOrders, kGive, relaxed);
struct NoLock {
  void lock() noexcept {}
  void unlock() noexcept {}
  [[nodiscard]] sync::CountWaits<SimAtomics> waits() const noexcept { return {}; }
};

TEST(RemoteFreeList_Mutants, MutexWeakenedOrAbsent_Race) {
  EXPECT_EQ(killed<Locked<RelaxedTake>>(), Failure::kRace);
  EXPECT_EQ(killed<Locked<RelaxedGive>>(), Failure::kRace);
  EXPECT_EQ((killed<MutexPendingList<SimAtomics, NoLock>>()), Failure::kRace);
}

// Breaks the mutex list's steps: a list that forgets to close, or to take before it closes.
struct NeverCloses : MutexPendingList<SimAtomics> {
  Node* close() noexcept { return drain(); }
};
struct ClosesUnlooked : MutexPendingList<SimAtomics> {
  Node* close() noexcept {
    Node* const taken = drain();  // glances at the count without the lock, and may miss a push
    static_cast<void>(MutexPendingList<SimAtomics>::close());
    return taken;
  }
};

TEST(RemoteFreeList_Mutants, MutexListClosesWrongly_SlotLost) {
  EXPECT_NE(killed<NeverCloses>(), Failure::kNone);
  EXPECT_NE(killed<ClosesUnlooked>(), Failure::kNone);
}

}  // namespace
}  // namespace freehold::thread_alloc
