// SPDX-License-Identifier: MIT
// The remote-free lists under every interleaving within the bounds.
// The oracle: a slot's stamp is plain data that the pusher writes before the push and the taker after it. So a slot that is
// taken too early or twice is a data race. At the end every slot was taken once, or refused and kept by its pusher.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <type_traits>

#include "freehold/thread_alloc/remote_free_list.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold::thread_alloc {
namespace {

using sim::Execution;
using sim::Failure;
using sim::Options;
using sim::Result;
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
class RemoteFreeList_Model : public testing::Test {
 public:
  // The mutex spins, sleeps and wakes besides: three threads on it take the smallest bounds.
  static Options options(const char* scenario, unsigned threads) {
    return {.name = std::string("remote_free/") + (kMutex ? "mutex/" : "lock-free/") + scenario,
            .preemptions = threads == 2 ? 5U
                           : kMutex     ? 2U
                                        : 4U,
            .stale = threads == 2 || !kMutex ? 2U : 0U};
  }
  static constexpr bool kMutex = std::is_same_v<List, MutexPendingList<SimAtomics>>;
};
using Lists = testing::Types<MutexPendingList<SimAtomics>, LockFreeList<SimAtomics>>;
TYPED_TEST_SUITE(RemoteFreeList_Model, Lists);

TYPED_TEST(RemoteFreeList_Model, PushAndDrain_EverySlotTakenOnce) {
  expect_ok(sim::explore(this->options("push, drain", 2), push_and_drain<TypeParam>));
}
TYPED_TEST(RemoteFreeList_Model, TwoPushersAndDrain_EverySlotTakenOnce) {
  expect_ok(sim::explore(this->options("2 push, drain", 3), two_pushers_and_drain<TypeParam>));
}
TYPED_TEST(RemoteFreeList_Model, TwoPushersAndClose_TakenOnceOrRefused) {
  expect_ok(sim::explore(this->options("2 push, close", 3), two_pushers_and_close<TypeParam>));
}

// Mutants. Each is run through all three scenarios; the first failure counts.
template <class List>
Failure first_failure(const std::string& mutant) {
  Options options{.name = "", .preemptions = 2, .stale = 0, .print = false};
  for (void (*const scenario)(Execution&) :
       {push_and_drain<List>, two_pushers_and_drain<List>, two_pushers_and_close<List>}) {
    options.name += "remote_free/" + mutant + "/";
    if (const Result result = sim::explore(options, scenario); result.failure != Failure::kNone) return result.failure;
  }
  return Failure::kNone;
}

// Of the lock-free list's orders.
template <std::memory_order kOrder>
struct PushWith : LockFreeListOrders {
  static constexpr std::memory_order kPush = kOrder;
};
template <std::memory_order kOrder>
struct SeeClosedWith : LockFreeListOrders {
  static constexpr std::memory_order kSeeClosed = kOrder;
};
template <std::memory_order kOrder>
struct TakeWith : LockFreeListOrders {
  static constexpr std::memory_order kTake = kOrder;
};
template <std::memory_order kOrder>
struct CloseWith : LockFreeListOrders {
  static constexpr std::memory_order kClose = kOrder;
};
template <class Orders>
using Ordered = LockFreeList<SimAtomics, Orders>;

TEST(RemoteFreeList_Mutants, LockFreeOrdersWeakened_Race) {
  EXPECT_EQ(first_failure<Ordered<PushWith<std::memory_order_relaxed>>>("push relaxed"), Failure::kRace);
  EXPECT_EQ(first_failure<Ordered<SeeClosedWith<std::memory_order_relaxed>>>("see closed relaxed"), Failure::kRace);
  EXPECT_EQ(first_failure<Ordered<TakeWith<std::memory_order_relaxed>>>("take relaxed"), Failure::kRace);
  EXPECT_EQ(first_failure<Ordered<CloseWith<std::memory_order_acquire>>>("close without release"), Failure::kRace);
  EXPECT_EQ(first_failure<Ordered<CloseWith<std::memory_order_release>>>("close without acquire"), Failure::kRace);
}

// Of the lock-free list's steps: a read-modify-write in two halves.
TEST(RemoteFreeList_Mutants, LockFreeStepsTorn_SlotLostOrTakenTwice) {
  EXPECT_NE(first_failure<LockFreeList<model::Tearing<model::kExchange>>>("torn exchange"), Failure::kNone);
  EXPECT_NE(first_failure<LockFreeList<model::Tearing<model::kCompareExchange>>>("torn compare-exchange"), Failure::kNone);
}

// Of the mutex list: its lock.
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
  EXPECT_EQ(first_failure<Locked<RelaxedTake>>("lock takes relaxed"), Failure::kRace);
  EXPECT_EQ(first_failure<Locked<RelaxedGive>>("lock gives relaxed"), Failure::kRace);
  EXPECT_EQ((first_failure<MutexPendingList<SimAtomics, NoLock>>("no lock")), Failure::kRace);
}

// Of the mutex list's steps: a list that forgets to close, or to take before it closes.
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
  EXPECT_NE(first_failure<NeverCloses>("never closes"), Failure::kNone);
  EXPECT_NE(first_failure<ClosesUnlooked>("closes in two steps"), Failure::kNone);
}

}  // namespace
}  // namespace freehold::thread_alloc
