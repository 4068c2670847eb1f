// SPDX-License-Identifier: MIT
// BestPool on the simulated machine: what its own design adds to the word pool, whose model stands beside this one. The
// scenarios that every strategy goes through, and the mutant of each order, are in pools_model.cpp.
#include <gtest/gtest.h>

#include <bit>

#include "freehold/pool/best_pool_core.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/support/inside.hpp"

namespace freehold {
namespace {

using pool::BestPool;
using pool::PoolShape;
using sim::Execution;
using sim::SimAtomics;
using sim::within;

using Payload = SimAtomics::var<std::uint64_t>;

// Uses a slot as its owner may; two owners at once, or one that does not see the former one's use, are a data race.
void use(void* slot) {
  auto* const payload = static_cast<Payload*>(slot);
  payload->store(payload->load() + 1);
}

template <class A>
using Pool = BestPool<A, sync::IgnoreContention, pool::BestPoolOrders{}>;

// Counts what is free at the end, found by one thread alone.
template <class P>
void expect_free(P& pool, unsigned slots) {
  SIM_CHECK(pool::Inside::check_invariants(pool));
  unsigned found = 0;
  while (pool.acquire() != nullptr) ++found;
  SIM_CHECK(found == slots);
}

constexpr PoolShape kTiny{.slots = 2, .slot_bytes = 8, .alignment = 8};
// Arrays of two entries.
constexpr PoolShape kSmall{.slots = 16, .slot_bytes = 8, .alignment = 8};

// A slot lies in the array of a thread that does not use it; the other thread needs it.
template <class A, pool::Growth kGrowth = pool::Growth::kFixed>
void last_slot(Execution& run) {
  Pool<A> pool(kTiny, kGrowth);
  run.spawn([&] {
    if (void* const slot = pool.acquire(); slot != nullptr) {
      use(slot);
      pool.release(slot);
    }
  });
  run.spawn([&] {
    void* const first = pool.acquire();
    // A growing pool may say no where threads cannot be fenced: it does not steal then.
    SIM_CHECK(first != nullptr || kGrowth == pool::Growth::kGrowing);
    if (first == nullptr) return;
    use(first);
    if (void* const second = pool.acquire(); second != nullptr) {
      use(second);
      pool.release(second);
    }
    pool.release(first);
  });
  run.check([&] { expect_free(pool, 2); });
}

// One thread gives memory back while another one asks for a slot of a pool that no thread uses.
void trimming(Execution& run) {
  Pool<SimAtomics> pool(kTiny);
  void* const a = pool.acquire();
  void* const b = pool.acquire();
  pool.release(a);
  pool.release(b);
  sim::end_outside_thread();  // all slots lie in words, in opened memory
  run.spawn([&] { (void)pool.trim(); });
  run.spawn([&] {
    void* const slot = pool.acquire();
    SIM_CHECK(slot != nullptr);
    use(slot);
    pool.release(slot);
  });
  run.check([&] { expect_free(pool, 2); });
}

// One thread finds the pool dry again and again while another brings slots back, more than its array holds, and needs one.
void dry(Execution& run) {
  Pool<SimAtomics> pool(kSmall);
  void* slots[16];
  for (void*& slot : slots) slot = pool.acquire();
  run.spawn([&] {
    for (unsigned i = 0; i < 3; ++i) use(slots[i]), pool.release(slots[i]);
    void* const slot = pool.acquire();
    SIM_CHECK(slot != nullptr);  // the other one has two at most
    use(slot);
    pool.release(slot);
  });
  run.spawn([&] {
    void* const a = pool.acquire();
    void* const b = pool.acquire();
    if (a != nullptr) use(a), pool.release(a);
    if (b != nullptr) use(b), pool.release(b);
  });
  run.check([&] { expect_free(pool, 3); });
}

// The thread that joined last stops the arrays; another thread looks at them without having heard of it otherwise.
void heard_by_looking(Execution& run) {
  Pool<SimAtomics> pool(kTiny);
  void* const a = pool.acquire();
  (void)pool.acquire();
  run.spawn([&] {
    for (unsigned i = 0; i < 2; ++i)
      if (void* const slot = pool.acquire(); slot != nullptr) use(slot), pool.release(slot);
  });
  run.spawn([&] {
    SIM_CHECK(pool.acquire() == nullptr);
    pool.release(a);
  });
  run.check([&] { expect_free(pool, 1); });
}

// Arrays of three entries, which give two neighbours back to the words.
constexpr PoolShape kPairs{.slots = 24, .slot_bytes = 8, .alignment = 8};

// From `ready` on two slots at least are free all the time: in the owner's array, and then in the words, to which a full
// array goes while a thief waits for that.
void free_all_the_time(Execution& run) {
  Pool<SimAtomics> pool(kPairs);
  void* slots[24];
  for (void*& slot : slots) slot = pool.acquire();
  SimAtomics::atomic<std::uint32_t> ready{0};
  run.spawn([&] {
    for (unsigned i = 0; i < 3; ++i) use(slots[i]), pool.release(slots[i]);
    ready.store(1, std::memory_order_release);
    use(slots[3]), pool.release(slots[3]);
    for (unsigned i = 0; i < 2; ++i) {
      void* const slot = pool.acquire();
      SIM_CHECK(slot != nullptr);
      use(slot);
    }
  });
  run.spawn([&] {
    const bool is_ready = ready.load(std::memory_order_acquire) != 0;
    void* const slot = pool.acquire();
    SIM_CHECK(slot != nullptr || !is_ready);
    if (slot != nullptr) use(slot), pool.release(slot);
  });
  run.check([&] { expect_free(pool, 2); });
}

// The owner of a stopped array makes room in it: moved down, its entries end below where they began. Two slots of it were
// taken before, one is free all the time from `ready` on.
void room_made_while_dry(Execution& run) {
  Pool<SimAtomics> pool(kPairs);
  void* slots[24];
  for (void*& slot : slots) slot = pool.acquire();
  SimAtomics::atomic<std::uint32_t> ready{0}, done{0};
  run.spawn([&] {
    void* slot = pool.acquire();  // joins
    if (slot == nullptr) {
      while (ready.load(std::memory_order_acquire) == 0) SimAtomics::wait(ready, 0);
      slot = pool.acquire();
      SIM_CHECK(slot != nullptr);
    }
    use(slot), pool.release(slot);
    done.store(1, std::memory_order_release);
    SimAtomics::notify_all(done);
  });
  run.spawn([&] {
    SIM_CHECK(pool.acquire() == nullptr);  // joins, and the pool is dry
    for (unsigned i = 0; i < 3; ++i) use(slots[i]), pool.release(slots[i]);
    for (unsigned i = 0; i < 2; ++i) use(pool.acquire());
    ready.store(1, std::memory_order_release);
    SimAtomics::notify_all(ready);
    use(slots[3]), pool.release(slots[3]);
    while (done.load(std::memory_order_acquire) == 0) SimAtomics::wait(done, 0);  // its end would start the arrays
  });
  run.check([&] { expect_free(pool, 2); });
}

// A thief empties an array, and comes again while its owner is in the middle of a pop of nothing: below the array's bottom
// lies still what was taken before.
void pop_of_nothing(Execution& run) {
  Pool<SimAtomics> pool(kTiny);
  (void)pool.acquire();
  SimAtomics::atomic<std::uint32_t> ready{0};
  run.spawn([&] {
    if (void* const slot = pool.acquire(); slot != nullptr) pool.release(slot);
    ready.store(1, std::memory_order_release);
    if (void* const slot = pool.acquire(); slot != nullptr) use(slot), pool.release(slot);
  });
  run.spawn([&] {
    if (ready.load(std::memory_order_acquire) == 0) return;
    void* const first = pool.acquire();
    void* const second = pool.acquire();
    SIM_CHECK(first == nullptr || first != second);
    if (first != nullptr) use(first), pool.release(first);
    if (second != nullptr) use(second), pool.release(second);
  });
  run.check([&] { expect_free(pool, 1); });
}

// Every interleaving with four preemptions (three where there are too many), and those with two in which a read may be stale
// as well.
TEST(BestPool_Model, EveryScenario_NothingTwiceNothingLostNobodyRefused) {
  sim::expect_all_ok("best", {{within("trim", 4, 0), trimming},
                              {within("trim_stale", 2, 1), trimming},
                              {within("last", 4, 0), last_slot<SimAtomics>},
                              {within("last_stale", 2, 1), last_slot<SimAtomics>},
                              {within("dry", 3, 0), dry},
                              {within("dry_stale", 2, 1), dry},
                              {within("free_all_the_time", 3, 0), free_all_the_time},
                              {within("room_made_while_dry", 2, 0), room_made_while_dry},
                              {within("pop_of_nothing", 4, 0), pop_of_nothing},
                              {within("pop_of_nothing_stale", 2, 1), pop_of_nothing},
                              {within("heard", 2, 1), heard_by_looking}});
}
TEST(BestPool_Model, WithoutMembarrier_NothingTwiceNothingLost) {
  sim::expect_all_ok("best",
                     {{within("no_membarrier", 3, 1), last_slot<model::NoMembarrier>},
                      {within("growing, no_membarrier", 3, 1), last_slot<model::NoMembarrier, pool::Growth::kGrowing>}});
}

}  // namespace
}  // namespace freehold
