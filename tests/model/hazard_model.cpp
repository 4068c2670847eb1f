// SPDX-License-Identifier: MIT
// The hazards of pool::HazardSet where they matter: one thread pops while another takes two slots and puts the first back,
// so that the head is what it was and the slot below it is not. Here each of their orders is weakened in turn.
#include <gtest/gtest.h>

#include <vector>

#include "freehold/strategies/hazard_stack.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold {
namespace {

using Order = std::memory_order;

template <pool::HazardOrders O = pool::HazardOrders{}>
sim::Result head_comes_back(const char* name) {
  return sim::explore({.name = name, .preemptions = 3, .stale = 2, .print = false}, [](sim::Execution& run) {
    pool::HazardSet<sim::SimAtomics, pool::HazardStackOrders{O, {}}> set(3);
    sim::SimAtomics::var<unsigned> stamps[3];
    sync::IgnoreContention ignore;
    const auto take = [&] {
      const std::uint32_t slot = set.take(ignore);
      SIM_CHECK(slot < 3 && "one is free all the time");
      stamps[slot].store(1);
      return slot;
    };
    run.spawn([&] {
      const std::uint32_t first = take();
      (void)take();
      set.put(first, ignore);
    });
    run.spawn([&] { (void)take(); });
    run.check([&] { SIM_CHECK(set.take(ignore) < 3 && set.take(ignore) == set.kNone); });
  });
}

TEST(Hazard_Model, HeadComesBack_NoSlotTwice) { sim::expect_ok(head_comes_back("hazards")); }

TEST(Hazard_Model, WeakerOrders_Seen) {
  const std::vector<sim::Result> results = {
      head_comes_back<{.publish = Order::acq_rel}>("hazards, publish"),
      head_comes_back<{.look = Order::acquire}>("hazards, look"),
      head_comes_back<{.pop = Order::acq_rel}>("hazards, pop"),
      head_comes_back<{.scan = Order::acquire}>("hazards, scan"),
      head_comes_back<{.push = Order::relaxed}>("hazards, push"),
      head_comes_back<{.park = Order::relaxed}>("hazards, park"),
  };
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_FALSE(results[i].ok()) << i << ": " << results[i];
}

}  // namespace
}  // namespace freehold
