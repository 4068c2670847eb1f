// SPDX-License-Identifier: MIT
// BestPool on the simulated machine: what its own design adds to the word pool, whose model stands beside this one. The
// scenarios that every strategy goes through, and the mutant of each order, are in pools_model.cpp.
#include <gtest/gtest.h>

#include <bit>

#include "freehold/pool/best_pool_core.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold {
namespace {

using pool::BestPool;
using pool::PoolShape;
using sim::Execution;
using sim::Options;
using sim::Result;
using sim::SimAtomics;

using Payload = SimAtomics::var<std::uint64_t>;

// Uses a slot as its owner may; two owners at once, or one that does not see the former one's use, are a data race.
void use(void* slot) {
  auto* const payload = static_cast<Payload*>(slot);
  payload->store(payload->load() + 1);
}

template <class A>
using Pool = BestPool<A, sync::IgnoreContention, pool::BestPoolOrders{}>;

// What is free at the end, found by one thread alone.
template <class P>
void expect_free(P& pool, unsigned slots) {
  SIM_CHECK(pool.check_invariants());
  unsigned found = 0;
  while (pool.acquire() != nullptr) ++found;
  SIM_CHECK(found == slots);
}

Options bounds(const char* name, unsigned preemptions, unsigned stale) {
  // The lock has a model of its own: nobody spins here.
  return {.name = name,
          .preemptions = preemptions,
          .stale = stale,
          .executions = 20'000'000,
          .decide = sim::Decide::kAlternative};
}

constexpr PoolShape kTiny{.slots = 2, .slot_bytes = 8, .alignment = 8};
// Arrays of two entries.
constexpr PoolShape kSmall{.slots = 16, .slot_bytes = 8, .alignment = 8};

// A slot lies in the array of a thread that does not use it; the other thread needs it.
template <class A>
Result last_slot(const Options& options, pool::Growth growth = pool::Growth::kFixed) {
  return sim::explore(options, [=](Execution& run) {
    Pool<A> pool(kTiny, growth);
    run.spawn([&] {
      if (void* const slot = pool.acquire(); slot != nullptr) {
        use(slot);
        pool.release(slot);
      }
    });
    run.spawn([&] {
      void* const first = pool.acquire();
      // A growing pool may say no where threads cannot be fenced: it does not steal then.
      SIM_CHECK(first != nullptr || growth == pool::Growth::kGrowing);
      if (first == nullptr) return;
      use(first);
      if (void* const second = pool.acquire(); second != nullptr) {
        use(second);
        pool.release(second);
      }
      pool.release(first);
    });
    run.check([&] { expect_free(pool, 2); });
  });
}

// One thread gives memory back while another one asks for a slot of a pool that nobody uses.
template <class A>
Result trimming(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kTiny);
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
  });
}

// One thread finds the pool dry again and again while another brings slots back, more than its array holds, and needs one.
template <class A>
Result dry(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kSmall);
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
  });
}

// Who joined last stops the arrays; another thread looks at them without having heard of it otherwise.
template <class A>
Result heard_by_looking(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kTiny);
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
  });
}

// Arrays of three entries, which give two neighbours back to the words.
constexpr PoolShape kPairs{.slots = 24, .slot_bytes = 8, .alignment = 8};

// From `ready` on two slots at least are free all the time: in the owner's array, and then in the words, to which a full
// array goes while a thief waits for that.
template <class A>
Result free_all_the_time(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kPairs);
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
  });
}

// The owner of a stopped array makes room in it: moved down, its entries end below where they began. Two slots of it were
// taken before, one is free all the time from `ready` on.
template <class A>
Result room_made_while_dry(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kPairs);
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
  });
}

// A thief empties an array, and comes again while its owner is amid a pop of nothing: below the array's bottom lies still
// what was taken before.
template <class A>
Result pop_of_nothing(const Options& options) {
  return sim::explore(options, [](Execution& run) {
    Pool<A> pool(kTiny);
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
  });
}

// Every interleaving with four preemptions (three where there are too many), and those with two in which a read may be stale
// as well.
TEST(BestPool_Model, TrimAgainstAcquire_NobodyIsRefused) {
  expect_ok(trimming<SimAtomics>(bounds("best/trim", 4, 0)));
  expect_ok(trimming<SimAtomics>(bounds("best/trim_stale", 2, 1)));
}
// A kernel without membarrier.
struct NoMembarrier : SimAtomics {
  static bool may_fence_heavily() noexcept { return false; }
  static void heavy_fence() noexcept {}
};

TEST(BestPool_Model, WithoutMembarrier_NothingTwiceNothingLost) {
  for (const pool::Growth growth : {pool::Growth::kFixed, pool::Growth::kGrowing}) {
    expect_ok(last_slot<NoMembarrier>(bounds("best/no_membarrier", 3, 1), growth));
  }
}
TEST(BestPool_Model, LastSlotInAnothersArray_Found) {
  expect_ok(last_slot<SimAtomics>(bounds("best/last", 4, 0)));
  expect_ok(last_slot<SimAtomics>(bounds("best/last_stale", 2, 1)));
}
TEST(BestPool_Model, DryPool_NothingTwiceNothingLostNobodyRefused) {
  expect_ok(dry<SimAtomics>(bounds("best/dry", 3, 0)));
  expect_ok(dry<SimAtomics>(bounds("best/dry_stale", 2, 1)));
}
TEST(BestPool_Model, FreeAllTheTime_NeverNone) {
  expect_ok(free_all_the_time<SimAtomics>(bounds("best/free_all_the_time", 3, 0)));
}
TEST(BestPool_Model, RoomMadeWhileDry_NeverNone) {
  expect_ok(room_made_while_dry<SimAtomics>(bounds("best/room_made_while_dry", 2, 0)));
}
TEST(BestPool_Model, PopOfNothingAgainstSteal_NothingTwiceNothingLost) {
  expect_ok(pop_of_nothing<SimAtomics>(bounds("best/pop_of_nothing", 4, 0)));
  expect_ok(pop_of_nothing<SimAtomics>(bounds("best/pop_of_nothing_stale", 2, 1)));
}
TEST(BestPool_Model, DryPoolHeardOfByLooking_NothingTwiceNothingLost) {
  expect_ok(heard_by_looking<SimAtomics>(bounds("best/heard", 2, 1)));
}

}  // namespace
}  // namespace freehold
