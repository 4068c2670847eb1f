// SPDX-License-Identifier: MIT
// pool::Shortage with the places that the pools are made of: words of bits, flags, stacks. One thread searches, another
// always leaves a slot free, though not always the same. shortage_model.cpp has the protocol alone; here the orders of
// FreeWords, FreeFlags and TaggedHead that it relies on are weakened in turn.
#include <gtest/gtest.h>

#include <vector>

#include "freehold/pool/tagged_stack.hpp"
#include "freehold/strategies/free_words.hpp"
#include "freehold/strategies/lock_free_flags.hpp"
#include "freehold/strategies/shortage.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold {
namespace {

using sim::SimAtomics;
using Order = std::memory_order;

// Two places, each with one slot, as words of bits.
template <pool::FreeWordsOrders O>
struct Words {
  Words() {
    for (int i = 0; i < 63; ++i) (void)words.take(0, contention);
  }
  // The slot of a place, or none.
  bool take(unsigned place) { return words.take(place, contention) != words.kNone; }
  void put(unsigned place) { words.put(place == 0 ? 63 : 64); }

  sync::IgnoreContention contention;
  pool::FreeWords<SimAtomics, O> words{65};
};

// The same as flags.
template <pool::FreeFlagsOrders O>
struct Flags {
  bool take(unsigned place) { return flags.take(place, contention); }
  void put(unsigned place) { flags.put(place); }

  sync::IgnoreContention contention;
  pool::FreeFlags<SimAtomics, O> flags{2};
};

// The same as stacks.
template <pool::TaggedStackOrders O>
struct Stacks {
  Stacks() {
    for (unsigned i = 0; i < 2; ++i) stacks[i].fill(links, i, i + 1);
  }
  bool take(unsigned place) { return stacks[place].pop(links, contention) != stacks[0].kEmpty; }
  void put(unsigned place) { stacks[place].push(links, place, contention); }

  sync::IgnoreContention contention;
  pool::StackLinks<SimAtomics> links{2};
  pool::TaggedHead<SimAtomics, O> stacks[2];
};

template <class Places, pool::ShortageOrders O = pool::ShortageOrders{}>
sim::Result search(const char* name, bool tells = true) {
  return sim::explore({.name = name, .preemptions = 4, .stale = 2}, [tells](sim::Execution& run) {
    Places places;
    pool::Shortage<SimAtomics, O> shortage;
    SimAtomics::var<unsigned> stamps[2];  // written by whoever holds the slot
    run.spawn([&] {
      const int found = shortage.search(-1, [&] {
        for (unsigned place = 0; place < 2; ++place)
          if (places.take(place)) return static_cast<int>(place);
        return -1;
      });
      SIM_CHECK(found >= 0 && "one was free all the time");
      stamps[found].store(1);
    });
    run.spawn([&] {
      if (places.take(0)) {
        stamps[0].store(2);
        places.put(0);
        if (tells) shortage.released();
      }
      if (places.take(1)) stamps[1].store(2);
    });
    run.check([] {});
  });
}

constexpr pool::FreeWordsOrders kWords{};
constexpr pool::FreeFlagsOrders kFlags{};
constexpr pool::TaggedStackOrders kStack = pool::kStackAmongOthers;
constexpr Order kAcqRel = Order::acq_rel, kAcquire = Order::acquire, kRelease = Order::release, kRelaxed = Order::relaxed;

TEST(Search_Model, OneIsAlwaysFree_Found) {
  const sim::Result words = search<Words<kWords>>("search/words");
  EXPECT_TRUE(words.ok()) << words;
  const sim::Result flags = search<Flags<kFlags>>("search/flags");
  EXPECT_TRUE(flags.ok()) << flags;
  const sim::Result stacks = search<Stacks<kStack>>("search/stacks");
  EXPECT_TRUE(stacks.ok()) << stacks;
}

TEST(Search_Model, WeakerOrdersOfTheSearch_Seen) {
  const std::vector<sim::Result> results = {
      search<Words<kWords>, {.ask = kAcquire}>("search/words, ask"),
      search<Words<kWords>, {.enter = kAcqRel}>("search/words, enter"),
      search<Flags<kFlags>, {.ask = kAcquire}>("search/flags, ask"),
      search<Flags<kFlags>, {.enter = kAcqRel}>("search/flags, enter"),
      search<Stacks<kStack>, {.ask = kAcquire}>("search/stacks, ask"),
      search<Stacks<kStack>, {.enter = kAcqRel}>("search/stacks, enter"),
  };
  for (const sim::Result& result : results) EXPECT_EQ(result.failure, sim::Failure::kCheck) << result;
}

TEST(Search_Model, WeakerOrdersOfThePlaces_Seen) {
  const std::vector<sim::Result> results = {
      search<Words<pool::FreeWordsOrders{.look = kAcquire}>>("search/words, look"),
      search<Words<pool::FreeWordsOrders{.take = kAcquire}>>("search/words, take acquire"),
      search<Words<pool::FreeWordsOrders{.put = kAcqRel}>>("search/words, put"),
      search<Flags<pool::FreeFlagsOrders{.look = kAcquire}>>("search/flags, look"),
      search<Flags<pool::FreeFlagsOrders{.take = kAcquire}>>("search/flags, take acquire"),
      search<Flags<pool::FreeFlagsOrders{.put = kAcqRel}>>("search/flags, put"),
      search<Stacks<pool::TaggedStackOrders{kAcquire, kStack.pop_again, kStack.pop, kStack.push}>>("search/stacks, look"),
      search<Stacks<pool::TaggedStackOrders{kStack.pop_look, kStack.pop_again, kRelaxed, kStack.push}>>(
          "search/stacks, pop"),
      search<Stacks<pool::TaggedStackOrders{kStack.pop_look, kStack.pop_again, kStack.pop, kRelease}>>(
          "search/stacks, push"),
  };
  for (const sim::Result& result : results) EXPECT_EQ(result.failure, sim::Failure::kCheck) << result;
  const std::vector<sim::Result> races = {
      search<Words<pool::FreeWordsOrders{.take = kRelease}>>("search/words, take release"),
      search<Flags<pool::FreeFlagsOrders{.take = kRelease}>>("search/flags, take release"),
      search<Stacks<pool::TaggedStackOrders{kStack.pop_look, kRelaxed, kStack.pop, kStack.push}>>("search/stacks, again"),
  };
  for (const sim::Result& result : races) EXPECT_EQ(result.failure, sim::Failure::kRace) << result;
}

TEST(Search_Model, ReleaseDoesNotTell_Seen) {
  EXPECT_EQ(search<Words<kWords>>("search/words, silent", false).failure, sim::Failure::kCheck);
  EXPECT_EQ(search<Stacks<kStack>>("search/stacks, silent", false).failure, sim::Failure::kCheck);
}

}  // namespace
}  // namespace freehold
