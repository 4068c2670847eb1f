// SPDX-License-Identifier: MIT
// check::GuardSlots on the simulated machine, with pages that are stamps: opened twice, closed twice or used while closed is
// a failed check or a data race. Oracle: a slot has one user at a time; of two frees of a block one succeeds; what find()
// reads while others allocate and free is one block's record, not a mixture.
#include "freehold/check/guard_slots.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold::check {
namespace {

using base::HeapError;
using sim::Failure;
using sim::SimAtomics;

constexpr std::size_t kPage = 64;
constexpr unsigned kMostSlots = 2;

template <class Orders = GuardOrders>
struct World {
  // Plain data: the slots' states order it.
  struct Pages {
    bool commit(void* page, std::size_t) { return change(page, true); }
    bool forbid(void* page, std::size_t) { return change(page, false); }
    bool change(void* page, bool open) {
      SimAtomics::var<bool>& is_open = this->is_open(page);
      SIM_CHECK(is_open.load() != open);
      is_open.store(open);
      return true;
    }
    SimAtomics::var<bool>& is_open(const void* address) {
      return open[(static_cast<const unsigned char*>(address) - memory) / kPage / 2];
    }

    SimAtomics::var<bool> open[kMostSlots];
    alignas(kPage) unsigned char memory[(2 * kMostSlots + 1) * kPage];
  };
  using Slots = GuardSlots<SimAtomics, Pages, Orders>;

  explicit World(unsigned count) { slots.init(pages, pages.memory, kPage, states, records, count); }

  // Allocates `bytes` bytes; the record says so in each of its parts.
  void* allocate(std::size_t bytes) {
    return slots.allocate(bytes, 1, false, [=](Trace& trace) { trace_of(10 * bytes, trace); });
  }
  typename Slots::Verdict free(void* block, std::size_t bytes) {
    return slots.free(
        block, [=](Trace& trace) { trace_of(10 * bytes + 1, trace); },
        [](const auto&) { SIM_CHECK(false && "nothing was written"); });
  }
  static void trace_of(std::size_t number, Trace& trace) {
    trace.thread = static_cast<std::uint32_t>(number);
    trace.depth = 1;
    trace.addresses[0] = reinterpret_cast<void*>(number);
  }
  static void check(const GuardedBlock& block) {
    SIM_CHECK(block.allocated.thread == 10 * block.bytes);
    SIM_CHECK(block.allocated.depth == 1 && block.allocated.addresses[0] == reinterpret_cast<void*>(10 * block.bytes));
    SIM_CHECK(block.freed.thread == (block.is_live ? 0 : 10 * block.bytes + 1));
  }

  Pages pages;
  typename Slots::State states[kMostSlots]{};
  typename Slots::Record records[kMostSlots]{};
  Slots slots;
  SimAtomics::atomic<void*> shared{nullptr};
};

// Two threads, one or two slots.
template <unsigned kCount, class Orders = GuardOrders>
void allocate_and_free(sim::Execution& run) {
  World<Orders> world(kCount);
  unsigned got[2] = {};
  for (unsigned t = 0; t < 2; ++t)
    run.spawn([&, t] {
      for (unsigned i = 0; i < 2; ++i) {
        void* const block = world.allocate(t + 1);
        if (block == nullptr) continue;
        ++got[t];
        SIM_CHECK(world.pages.is_open(block).load());
        SIM_CHECK(!world.free(block, t + 1).is_bad);
      }
    });
  run.check([&] {
    SIM_CHECK(got[0] + got[1] >= 2);  // a look may miss each slot at the moment when it is free
    void* const block = world.allocate(7);
    SIM_CHECK(block != nullptr && world.slots.bytes_of(block) == 7);
  });
}

void free_twice(sim::Execution& run) {
  World<> world(1);
  void* const block = world.allocate(3);
  bool freed[2] = {};
  for (unsigned t = 0; t < 2; ++t)
    run.spawn([&, t] {
      const auto verdict = world.free(block, 3);
      SIM_CHECK(!verdict.is_bad || verdict.error == HeapError::kDoubleFree);
      freed[t] = !verdict.is_bad;
    });
  run.check([&] {
    SIM_CHECK(freed[0] != freed[1]);
    SIM_CHECK(world.allocate(4) != nullptr);
  });
}

// A block goes to another thread, which is told its address in order, and is freed there.
void free_elsewhere(sim::Execution& run) {
  World<> world(1);
  run.spawn([&] {
    world.shared.store(world.allocate(1), std::memory_order_release);
    if (void* const second = world.allocate(2); second != nullptr) SIM_CHECK(!world.free(second, 2).is_bad);
  });
  run.spawn([&] {
    if (void* const block = world.shared.load(std::memory_order_acquire); block != nullptr)
      SIM_CHECK(!world.free(block, 1).is_bad);
  });
  run.check([] {});
}

template <class Orders = GuardOrders>
void find_amid_changes(sim::Execution& run) {
  World<Orders> world(1);
  const unsigned char* const address = world.pages.memory + kPage;
  run.spawn([&] {
    for (std::size_t bytes = 1; bytes <= 2; ++bytes) {
      void* const block = world.allocate(bytes);
      SIM_CHECK(block != nullptr && !world.free(block, bytes).is_bad);
    }
  });
  run.spawn([&] {
    if (const auto finding = world.slots.find(address); finding.is_known && finding.block.is_whole)
      World<Orders>::check(finding.block);
  });
  run.check([&] {
    const auto finding = world.slots.find(address);
    SIM_CHECK(finding.is_known && finding.block.is_whole && finding.error == HeapError::kUseOfFreed &&
              finding.block.bytes == 2);
    World<Orders>::check(finding.block);
  });
}

TEST(GuardSlots_Model, EveryScenario_OneUserAtATimeAndOneBlocksRecord) {
  sim::expect_all_ok("guards", {{{.name = "one", .stale = 2}, allocate_and_free<1>},
                                {{.name = "two"}, allocate_and_free<2>},
                                {{.name = "twice", .preemptions = 3, .stale = 2}, free_twice},
                                {{.name = "elsewhere", .stale = 2}, free_elsewhere},
                                {{.name = "find", .stale = 2}, find_amid_changes<>}});
}

// ---- mutants

FREEHOLD_WEAKER(ClaimsRelaxed, GuardOrders, kClaim, relaxed);
FREEHOLD_WEAKER(PublishesRelaxed, GuardOrders, kPublish, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, GuardOrders, kLook, relaxed);
FREEHOLD_WEAKER(WritesUnfenced, GuardOrders, kBeforeWrites, relaxed);
FREEHOLD_WEAKER(ReadsUnfenced, GuardOrders, kAfterReads, relaxed);

Failure failure_of(void (*scenario)(sim::Execution&)) {
  return sim::first_failure("guards", {{{.name = "mutant", .stale = 3}, scenario}}, 2);
}
TEST(GuardSlots_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ((failure_of(allocate_and_free<1, ClaimsRelaxed>)), Failure::kRace);
  EXPECT_EQ((failure_of(allocate_and_free<1, PublishesRelaxed>)), Failure::kRace);
  EXPECT_EQ(failure_of(find_amid_changes<LooksRelaxed>), Failure::kCheck);
  EXPECT_EQ(failure_of(find_amid_changes<WritesUnfenced>), Failure::kCheck);
  EXPECT_EQ(failure_of(find_amid_changes<ReadsUnfenced>), Failure::kCheck);
}

}  // namespace
}  // namespace freehold::check
