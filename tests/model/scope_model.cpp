// SPDX-License-Identifier: MIT
// Scopes on the simulated machine: a private heap, threads that keep free slots and freed blocks of it, frees by other
// threads that find the heap by themselves, a thread that takes what others keep, and the heap's end amid all that. The
// engine's part is short: which thread has which array. free's store of a block has no order natively, see
// heap_frees_model.cpp. The oracle: a block is data of the thread that has it, and each slab of the thread that gives it
// back. So a block that two threads have, or a slab that somebody uses after its end, is a data race. At the end everything
// has gone back.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "freehold/alloc/scope/heap_frees.hpp"
#include "freehold/alloc/scope/heap_map.hpp"
#include "freehold/alloc/scope/scope_slots.hpp"
#include "freehold/heap/scoped_heap.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/private_heap_world.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using alloc::HeapFreesOrders;
using alloc::HeapMapOrders;
using alloc::ScopedHeap;
using heap::PrivateHeapOrders;
using model::FewSlabs;
using model::kBytes;
using model::Tiny;
using sim::Execution;
using sim::Failure;
using sim::SimAtomics;
using sim::within;

constexpr unsigned kThreads = 3;  // and what is outside of them

// The source of the heap's slabs. Each is data that a use reads and giving back writes.
struct Slabs : FewSlabs {
  inline static SimAtomics::var<bool>* is_there;
  static std::size_t index_of(const void* address) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory().slabs[0]) / kSlabBytes;
  }
  static void* take(std::size_t bytes, std::size_t alignment) noexcept {
    void* const slab = FewSlabs::take(bytes, alignment);
    if (slab != nullptr) is_there[index_of(slab)].store(true);
    return slab;
  }
  static void give_back(void* slab, std::size_t alignment) noexcept {
    is_there[index_of(slab)].store(false);
    FewSlabs::give_back(slab, alignment);
  }
};
void use(void* block) {
  SIM_CHECK(Slabs::is_there[Slabs::index_of(block)].load());
  model::use(block);
}

// Mutants of the engine's part.
enum Mutants : unsigned { kNoFence = 1, kNoWait = 2, kScopesGoOn = 4 };

template <class MapOrders, class FreesOrders, unsigned kMutants>
struct World {
  using Map = alloc::HeapMap<ScopedHeap, SimAtomics, os::Pages, MapOrders>;
  using Frees = alloc::HeapFrees<SimAtomics, FreesOrders, 2>;
  struct Thread {
    typename Map::Mark mark{nullptr};
    typename Map::Entry scope{nullptr};
    Frees frees;
    std::size_t freed = 0;
    alloc::ScopeSlots slots;
    void** tops[alloc::ScopeSlots::kClasses];
  };
  struct State {
    typename Map::Entry entries[FewSlabs::kSlabs]{};
    Thread threads[kThreads + 1];
    SimAtomics::var<bool> is_there[FewSlabs::kSlabs];

    State() {
      model::start_afresh();
      state = this;
      Slabs::is_there = is_there;
      for (Thread& thread : threads) {
        thread.slots.tops = thread.tops;
        for (std::size_t c = 0; c < alloc::ScopeSlots::kClasses; ++c) thread.tops[c] = thread.slots.first(c);
        thread.tops[0] += alloc::ScopeSlots::kSlots;
      }
    }
  };
  inline static State* state;

  static Thread& me() { return state->threads[std::min(sim::report::thread(), kThreads)]; }
  static typename Map::Entry& entry(const void* address) { return state->entries[Slabs::index_of(address)]; }
  static constexpr auto light_fence = [] { SimAtomics::light_fence(); };

  static void give(void** blocks, std::size_t n) {
    alloc::give_to_heaps(
        blocks, n, [](const void* block, const auto& f) { return Map::with_heap(me().mark, entry(block), light_fence, f); },
        [](const void*) { SIM_CHECK(!"a block of no heap"); });
  }
  static void give_freed_blocks(Thread& thread) {
    void* blocks[Frees::kEntries];
    give(blocks, thread.frees.take_all(std::exchange(thread.freed, 0), blocks, light_fence));
  }

  // ---- what a thread does

  static void enter(ScopedHeap& heap, Thread& thread) { thread.scope.store(&heap, std::memory_order_relaxed); }
  // Null: the scope is of no heap any more.
  [[nodiscard]] static void* allocate() {
    static constexpr auto c = alloc::SizeClasses::class_of(kBytes).index();
    Thread& thread = me();
    if (void**& top = thread.tops[c]; top != thread.slots.first(c)) return *--top;
    void* block = nullptr;
    const auto refill = [&](ScopedHeap& heap) {
      void* others[Frees::kEntries];
      std::size_t n = 0;
      thread.frees.take_by(light_fence, [&] {
        auto* const frees = reinterpret_cast<void**>(&thread.frees.entries[0]);
        n = heap.calls->sort(heap, frees, std::exchange(thread.freed, 0), thread.slots, others);
      });
      block = thread.slots.refill(heap, c, kBytes);
      give(others, n);
    };
    if (Map::with_heap(thread.mark, thread.scope, light_fence, refill)) SIM_CHECK(block != nullptr);
    return block;
  }
  static void free(void* block) {
    Thread& thread = me();
    if (thread.freed == Frees::kEntries) give_freed_blocks(thread);
    thread.frees.entries[thread.freed++].store(block, std::memory_order_release);
  }
  static void leave(Thread& thread) {
    give_freed_blocks(thread);
    thread.slots.empty(give);
    thread.scope.store(nullptr, std::memory_order_relaxed);
  }

  // ---- what the heap asks of the engine

  static bool put(const void* address, bool, ScopedHeap& heap) noexcept {
    Map::put(entry(address), &heap);
    return true;
  }
  static void remove(const void* address) noexcept { Map::put(entry(address), nullptr); }
  static void collect(ScopedHeap* heap) noexcept {
    give_freed_blocks(me());
    void* blocks[kThreads * Frees::kEntries];
    const auto arrays = [](const auto& f) {
      for (unsigned i = 0; i < kThreads; ++i) f(state->threads[i].frees);
    };
    const auto fence_others = [] { return SimAtomics::heavy_fence(), true; };
    const auto is_wanted = [heap](const void* block) { return Map::heap_of(entry(block)) == heap; };
    give(blocks, alloc::take_from_all(arrays, fence_others, is_wanted, blocks, std::size(blocks)));
  }
  static void end(ScopedHeap& heap) noexcept {
    collect(&heap);
    for (Thread& thread : state->threads)
      if (ScopedHeap* of = &heap; (kMutants & kScopesGoOn) == 0)
        (void)thread.scope.compare_exchange_strong(of, nullptr, std::memory_order_relaxed);
  }
  static void wait_for_users(const ScopedHeap& heap) noexcept {
    if ((kMutants & kNoFence) == 0) SimAtomics::heavy_fence();
    for (const Thread& thread : state->threads)
      if ((kMutants & kNoWait) == 0)
        sync::wait_until<SimAtomics>([&] { return &thread == &me() || !Map::is_used(thread.mark, &heap); });
  }
  static constexpr alloc::ScopeEngine kEngine{nullptr,
                                              nullptr,
                                              nullptr,
                                              nullptr,
                                              put,
                                              remove,
                                              wait_for_users,
                                              collect,
                                              [](const ScopedHeap&, std::uint64_t&, std::uint64_t&) noexcept {},
                                              end,
                                              nullptr};
};

// A private heap, of which threads get their first blocks, or whose next block takes a slab.
enum class Slots { kFree, kNoneFree };
template <class Orders, class W, Slots kSlots>
struct Subject {
  using Heap = heap::BasicPrivateHeap<SimAtomics, Tiny, Slabs, heap::Unregistered, Orders>;
  alignas(Heap) std::byte room[sizeof(Heap)];
  Heap* heap = ::new (room) Heap;
  ScopedHeap* scoped = heap::scoped_heap(*heap, W::kEngine);
  SimAtomics::atomic<void*> box{nullptr};
  void* blocks[64]{};
  unsigned n = 0;

  Subject() {
    SIM_CHECK(scoped != nullptr);
    if (kSlots == Slots::kNoneFree)
      for (const unsigned all = slots(); n < all; ++n) blocks[n] = heap->allocate(kBytes);
  }
  // Returns how many another heap would give before it takes a further slab.
  unsigned slots() {
    alignas(Heap) std::byte other_room[sizeof(Heap)];
    auto* const other = ::new (other_room) Heap;
    SIM_CHECK(heap::scoped_heap(*other, W::kEngine) != nullptr);
    const auto slabs = [] { return std::count(FewSlabs::memory().taken, std::end(FewSlabs::memory().taken), true); };
    const auto before = slabs();
    unsigned all = 0;
    for (void* block; block = other->allocate(kBytes), block != nullptr && slabs() == before; ++all) blocks[all] = block;
    SIM_CHECK(slabs() > before);
    (void)other->release_all(heap::HeldBlocks::kEnd);
    other->~Heap();
    return all;
  }
  void end() { std::exchange(heap, nullptr)->~Heap(); }
  // The heap ends, unless it has; what threads and plain code have goes back. Nothing is left then.
  void end_all() {
    if (heap != nullptr) end();
    for (unsigned i = 0; i < n; ++i) W::free(blocks[i]);
    if (void* const block = box.load(std::memory_order_relaxed); block != nullptr) W::free(block);
    for (auto& thread : W::state->threads) W::leave(thread);
    for (const bool taken : FewSlabs::memory().taken) SIM_CHECK(!taken);
    for (const auto& entry : W::state->entries) SIM_CHECK(W::Map::heap_of(entry) == nullptr);
  }
};

// A thread allocates and frees in a scope. If there are free slots, it hands a block on to another one, which frees that.
// Then the other one takes what the first one keeps, or ends the heap.
template <class Orders, class W, Slots kSlots, bool kEnds>
void scope_and_others(Execution& run) {
  typename W::State state;
  Subject<Orders, W, kSlots> subject;
  const bool hands_on = kSlots == Slots::kFree;
  W::enter(*subject.scoped, state.threads[0]);
  run.spawn([&, hands_on] {
    for (unsigned i = 0; i < 3; ++i) {
      void* const block = W::allocate();
      if (block == nullptr) continue;
      use(block);
      i == 0 && hands_on ? subject.box.store(block, std::memory_order_release) : W::free(block);
    }
    W::leave(W::me());
  });
  run.spawn([&, hands_on] {
    if (hands_on) {
      void* const block = subject.box.exchange(nullptr, std::memory_order_acquire);
      if (block == nullptr) return;
      use(block);
      W::free(block);
    }
    kEnds ? subject.end() : W::collect(subject.scoped);
  });
  run.check([&] { subject.end_all(); });
}

// Two threads free a block each, while a third ends the heap.
template <class Orders, class W>
void ends_before_its_blocks(Execution& run) {
  typename W::State state;
  Subject<Orders, W, Slots::kFree> subject;
  void* blocks[2];
  for (void*& block : blocks) block = subject.scoped->calls->allocate(*subject.scoped, kBytes, 16);
  for (void*& block : blocks)
    run.spawn([&block] {
      use(block);
      W::give(&block, 1);
    });
  run.spawn([&] { subject.end(); });
  run.check([&] { subject.end_all(); });
}

template <class Orders = PrivateHeapOrders, class MapOrders = HeapMapOrders, class FreesOrders = HeapFreesOrders,
          unsigned kMutants = 0, class W = World<MapOrders, FreesOrders, kMutants>>
const sim::Scenarios kScopes{{within("ends", 2, 1), ends_before_its_blocks<Orders, W>},
                             {within("taken from", 2, 1), scope_and_others<Orders, W, Slots::kFree, false>},
                             {within("ends amid a scope", 2, 1), scope_and_others<Orders, W, Slots::kFree, true>},
                             {within("ends amid a new slab", 2, 1), scope_and_others<Orders, W, Slots::kNoneFree, true>}};

TEST(Scopes_Model, NothingIsLostNorGivenTwiceNorUsedAfterTheEnd) { sim::expect_all_ok("scopes", kScopes<>); }

FREEHOLD_WEAKER(PartNotReleased, PrivateHeapOrders, kLeavePart, acquire);
FREEHOLD_WEAKER(PartNotAcquired, PrivateHeapOrders, kLeavePart, release);
FREEHOLD_WEAKER(LeavesRelaxed, HeapMapOrders, kLeave, relaxed);
FREEHOLD_WEAKER(MarksRelaxed, HeapMapOrders, kMark, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, HeapMapOrders, kLook, relaxed);
FREEHOLD_WEAKER(TakesAndLeavesRelaxed, HeapFreesOrders, kLeave, relaxed);
FREEHOLD_WEAKER(TakesAndLooksRelaxed, HeapFreesOrders, kLook, relaxed);
TEST(Scopes_Model, Mutants_AreKilled) {
  const auto killed = [](const sim::Scenarios& scenarios) {
    return sim::first_failure("scopes", scenarios, 2, 1) != Failure::kNone;
  };
  using Shipped = PrivateHeapOrders;
  EXPECT_TRUE(killed(kScopes<PartNotReleased>)) << "a part is left without a release";
  EXPECT_TRUE(killed(kScopes<PartNotAcquired>)) << "a part is left without an acquire";
  EXPECT_TRUE(killed(kScopes<Shipped, LeavesRelaxed>)) << "a call is left without a release";
  EXPECT_TRUE(killed(kScopes<Shipped, MarksRelaxed>)) << "the next call begins without a release";
  EXPECT_TRUE(killed(kScopes<Shipped, LooksRelaxed>)) << "a mark is looked at without an acquire";
  EXPECT_TRUE(killed(kScopes<Shipped, HeapMapOrders, TakesAndLeavesRelaxed>)) << "an array is left without a release";
  EXPECT_TRUE(killed(kScopes<Shipped, HeapMapOrders, TakesAndLooksRelaxed>)) << "it is looked at without an acquire";
  EXPECT_TRUE(killed(kScopes<Shipped, HeapMapOrders, HeapFreesOrders, kNoFence>)) << "no fence at the heap's end";
  EXPECT_TRUE(killed(kScopes<Shipped, HeapMapOrders, HeapFreesOrders, kNoWait>)) << "no wait at the heap's end";
  EXPECT_TRUE(killed(kScopes<Shipped, HeapMapOrders, HeapFreesOrders, kScopesGoOn>)) << "scopes go on after the heap's end";
}

// ---- the map's tables

// Memory of the system, which is zero once it is there, and is not before.
struct Tables {
  using Word = SimAtomics::atomic<void*>;
  static constexpr std::size_t kBytes = std::size_t{512} << 10, kTables = 4;
  inline static Word* words;  // of all tables
  inline static SimAtomics::atomic<std::uint32_t>* mapped;
  // The words of each table that the scenario looks at.
  static constexpr std::size_t kLookedAt[] = {0, 1, 2};

  static void* map(std::size_t bytes) noexcept {
    SIM_CHECK(bytes <= kBytes);
    Word* const table = words + mapped->fetch_add(1, std::memory_order_relaxed) * (kBytes / sizeof(Word));
    for (const std::size_t i : kLookedAt) table[i].store(nullptr, std::memory_order_relaxed);
    return table;
  }
  static void release(void*, std::size_t) noexcept {}
};

// Two threads make the first entries of one leaf at the same time, and look for each other's.
template <class Orders>
void tables_are_made(Execution& run) {
  using Map = alloc::HeapMap<int, SimAtomics, Tables, Orders>;
  static void* memory[Tables::kTables * Tables::kBytes / sizeof(void*)];
  static int heaps[2], nobody;
  Tables::words = reinterpret_cast<Tables::Word*>(memory);
  SimAtomics::atomic<std::uint32_t> mapped{0};
  Tables::mapped = &mapped;
  for (std::size_t table = 0; table < Tables::kTables; ++table)
    for (const std::size_t i : Tables::kLookedAt) memory[table * (Tables::kBytes / sizeof(void*)) + i] = &nobody;
  Map map;
  const auto address_of = [](std::uintptr_t i) { return reinterpret_cast<void*>(i << Map::kPartShift); };
  for (std::uintptr_t i = 0; i < 2; ++i)
    run.spawn([&, i] {
      if (auto* const other = map.find(address_of(1 - i)); other != nullptr) {
        int* const heap = Map::heap_of(*other);
        SIM_CHECK(heap == nullptr || heap == &heaps[1 - i]);
      }
      auto* const mine = map.make(address_of(i));
      SIM_CHECK(mine != nullptr && Map::heap_of(*mine) == nullptr);
      Map::put(*mine, &heaps[i]);
    });
  run.check([&] {
    for (std::uintptr_t i = 0; i < 2; ++i) SIM_CHECK(Map::heap_of(*map.find(address_of(i))) == &heaps[i]);
  });
}
template <class Orders = HeapMapOrders>
const sim::Scenarios kTables{{within("tables", 3, 2), tables_are_made<Orders>}};

FREEHOLD_WEAKER(PublishesRelaxed, HeapMapOrders, kPublish, relaxed);
FREEHOLD_WEAKER(FindsRelaxed, HeapMapOrders, kFind, relaxed);
TEST(Scopes_Model, TheMapsTables_AreMadeOnce) {
  sim::expect_all_ok("heap map", kTables<>);
  const auto killed = [](const sim::Scenarios& scenarios) {
    return sim::first_failure("heap map", scenarios, 3, 2) != Failure::kNone;
  };
  EXPECT_TRUE(killed(kTables<PublishesRelaxed>)) << "a table is published without a release";
  EXPECT_TRUE(killed(kTables<FindsRelaxed>)) << "a table is found without an acquire";
}

}  // namespace
}  // namespace freehold
