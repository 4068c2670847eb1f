// SPDX-License-Identifier: MIT
// pool::Shortage on the simulated machine. Two places, one thing: a walker holds it in one place or is about to put it into
// the other, so that there is always one free place; a searcher may not answer that no place is free. The generic scenarios
// of pools_model.cpp seldom get a thread to walk behind another's sweep; here it does nothing else.
#include "freehold/strategies/shortage.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <utility>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/pool_subject.hpp"

namespace freehold::model {
namespace {

using sim::Failure;
using sim::Result;
using sim::SimAtomics;

// The orders of the protocol and of the pool's accesses that it relies on.
struct Orders {
  pool::ShortageOrders shortage;
  std::memory_order look = std::memory_order_seq_cst;
  std::memory_order take = std::memory_order_acq_rel;
  std::memory_order put = std::memory_order_seq_cst;
};
constexpr const char* kNames[] = {"ask", "enter", "tell", "compare", "look", "take", "put"};

template <Orders O>
struct World {
  SimAtomics::atomic<std::uint32_t> free[2]{};
  SimAtomics::var<unsigned> uses[2];
  pool::Shortage<SimAtomics, O.shortage> shortage;

  bool take(unsigned place) {
    std::uint32_t seen = free[place].load(O.look);
    while (seen != 0)
      if (free[place].compare_exchange_weak(seen, 0, O.take, O.look)) return use(place), true;
    return false;
  }
  void use(unsigned place) { uses[place].store(uses[place].load() + 1); }
  void put(unsigned place) {
    use(place);
    free[place].fetch_add(1, O.put);
    shortage.released();
  }
  // 0: none; else the place plus one.
  unsigned search(unsigned first) {
    return shortage.search(0u, [&] { return take(first) ? first + 1 : take(1 - first) ? 2 - first : 0; });
  }
};

template <Orders O>
Result walk(std::string name, unsigned rounds, unsigned searchers, unsigned preemptions, bool print) {
  return sim::explore({.name = std::move(name), .preemptions = preemptions, .stale = 2, .print = print},
                      [=](sim::Execution& run) {
                        World<O> world;
                        world.free[0].store(1, std::memory_order_relaxed);  // the walker holds place 1
                        run.spawn([&, rounds] {
                          for (unsigned round = 0; round < rounds; ++round) {
                            const unsigned held = 1 - round % 2;
                            world.put(held);
                            if (!world.take(1 - held)) return;  // a searcher has it
                          }
                        });
                        for (unsigned i = 0; i < searchers; ++i) {
                          run.spawn([&, i] { SIM_CHECK(world.search(1 - i) != 0 && "a place was free all the time"); });
                        }
                        run.check([] {});
                      });
}

TEST(Shortage_Model, WalkerBehindTheSweep_NeverNone) { sim::expect_ok(walk<Orders{}>("shortage/walk", 3, 1, 6, true)); }

template <std::size_t kIndex, unsigned kWhich>
constexpr Orders weakened() {
  auto orders = std::bit_cast<std::array<std::memory_order, 7>>(Orders{});
  orders[kIndex] = weaker(orders[kIndex], kWhich);
  return std::bit_cast<Orders>(orders);
}

template <std::size_t kIndex, unsigned kWhich>
void hunt_one() {
  constexpr auto kBefore = std::bit_cast<std::array<std::memory_order, 7>>(Orders{})[kIndex];
  if constexpr (kWhich < weakenings(kBefore)) {
    const std::string name = std::string(kNames[kIndex]) + " " + std::string(text(weaker(kBefore, kWhich)));
    const Result result = walk<weakened<kIndex, kWhich>()>("shortage/" + name, 3, 1, 6, false);
    EXPECT_NE(result.failure, Failure::kNone) << name << " survives";
  }
}

TEST(Shortage_Mutants, EachOrderWeakened_Seen) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    ((hunt_one<kIndex, 0>(), hunt_one<kIndex, 1>()), ...);
  }(std::make_index_sequence<7>{});
}

}  // namespace
}  // namespace freehold::model
