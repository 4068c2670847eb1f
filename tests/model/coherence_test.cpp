// SPDX-License-Identifier: MIT
// The coherence counter on pools whose misses can be told by hand, and what it says of the strategies that claim something
// about them.
#include "sim/coherence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lab/strategies/registry.hpp"

namespace freehold {
namespace {

using sim::CoherenceCount;
using sim::CoherenceOptions;
using sim::CoherentAtomics;
using sim::Workload;

constexpr unsigned kQuanta[] = {1, 16, 256};
constexpr unsigned kCores[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

// ---- the counter itself

// Hands out the same address for ever; each operation writes one counter, of the core or of all.
template <unsigned kStride, bool kOfAll = false>
class CounterPool {
 public:
  explicit CounterPool(int) {}
  void* acquire() noexcept { return mine().fetch_add(1, std::memory_order_relaxed), this; }
  void release(void*) noexcept { mine().fetch_add(1, std::memory_order_relaxed); }

 private:
  using Counter = CoherentAtomics::atomic<std::uint64_t>;
  Counter& mine() noexcept { return counters_[kOfAll ? 0 : CoherentAtomics::thread_number() * kStride]; }
  Counter counters_[sim::kMaxCores * kStride];
};
using OwnLines = CounterPool<8>;
using OneWord = CounterPool<1, true>;
using OwnWords = CounterPool<1>;

TEST(Coherence, OwnLines_AnyCores_NoMiss) {
  for (const unsigned cores : kCores) {
    const CoherenceCount count = sim::coherence<OwnLines>(0, {.cores = cores});
    EXPECT_EQ(count.misses, 0u) << cores;
    EXPECT_EQ(count.cold, 0u) << cores << ": all before the end of the warm-up";
    EXPECT_EQ(count.pairs, cores * 64u);
    EXPECT_EQ(count.accesses, cores * 128u);
  }
}
TEST(Coherence, OneWord_EachInTurn_EveryAccessMisses) {
  EXPECT_EQ(sim::coherence<OneWord>(0, {.cores = 1}).misses, 0u);
  EXPECT_EQ(sim::coherence<OneWord>(0, {.cores = 2, .quantum = 1}).misses_per_pair(), 2.0);
  EXPECT_EQ(sim::coherence<OneWord>(0, {.cores = 256, .quantum = 1}).misses_per_pair(), 2.0);
}
TEST(Coherence, OneWord_LongQuantum_OneMissAQuantum) {
  // 128 accesses of each core in quanta of 16.
  EXPECT_EQ(sim::coherence<OneWord>(0, {.cores = 4, .quantum = 16}).misses, 4 * 128 / 16u);
}
TEST(Coherence, OwnWordsOfOneLine_FalselyShared) {
  EXPECT_EQ(sim::coherence<OwnWords>(0, {.cores = 8, .quantum = 1}).misses_per_pair(), 2.0);
  // A second line is of other cores: as many misses, no more.
  EXPECT_EQ(sim::coherence<OwnWords>(0, {.cores = 16, .quantum = 1}).misses_per_pair(), 2.0);
}

// All read one line; the first core alone writes it, when it releases.
class ReadMostly {
 public:
  explicit ReadMostly(int) {}
  void* acquire() noexcept { return (void)shared_.load(std::memory_order_relaxed), this; }
  void release(void*) noexcept {
    if (CoherentAtomics::thread_number() == 0)
      shared_.store(1, std::memory_order_relaxed);
    else
      (void)shared_.load(std::memory_order_relaxed);
  }

 private:
  CoherentAtomics::atomic<std::uint64_t> shared_{0};
};
TEST(Coherence, OneWriter_EachWriteCostsEveryReaderOneMiss) {
  // Core 0 reads 64 times, then writes 64 times, and the others read as often. The counted round is the second: the first of
  // the writes takes all copies away, and each of the others reads its next.
  const CoherenceCount count =
      sim::coherence<ReadMostly>(0, {.cores = 5, .quantum = 128, .pairs = 64, .warm_up = 64, .held = 64});
  EXPECT_EQ(count.misses, 4u + 1u);
}

TEST(Coherence, Exchange_OneCore_TakesItsOwn) {
  const CoherenceCount count = sim::coherence<OwnLines>(0, {.cores = 1, .workload = Workload::kExchange});
  EXPECT_EQ(count.accesses, 128u);
}

// Never gives a slot.
struct Dry {
  explicit Dry(int) {}
  void* acquire() noexcept { return nullptr; }
  void release(void*) noexcept {}
};
TEST(Coherence, NoSlotEver_Reported) { EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = 2}), std::runtime_error); }
TEST(Coherence, ImpossibleOptions_Refused) {
  EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = sim::kMaxCores + 1}), std::invalid_argument);
  EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = 1, .quantum = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = 1, .held = 257}), std::invalid_argument);
}

// ---- the cores beneath it

using Counter = CoherentAtomics::atomic<std::uint64_t>;

sim::Tally sum_of(const sim::Cores& cores, unsigned n) {
  sim::Tally sum;
  for (unsigned i = 0; i < n; ++i) sum += cores.tally(i);
  return sum;
}

TEST(Cores, SharedCounter_OneMissAnOperationFromTwoCoresOn) {
  for (const unsigned n : kCores) {
    Counter counter{0};
    sim::Cores cores(n, 1);
    cores.run([&](unsigned) {
      for (int i = 0; i < 100; ++i) counter.fetch_add(1);
    });
    const sim::Tally sum = sum_of(cores, n);
    EXPECT_EQ(sum.accesses, n * 100u);
    EXPECT_EQ(sum.first + sum.fetched, n) << "one a core";
    EXPECT_EQ(sum.first, 1u) << "the others fetch it from a core";
    EXPECT_EQ(sum.misses, n == 1 ? 0u : n * 99u);
    EXPECT_EQ(counter.load(), n * 100u);
  }
}
TEST(Cores, PrivateLines_NoMissInAnyTurns) {
  struct alignas(base::kCacheLine) Line {
    Counter counter{0};
  };
  for (const sim::Turns turns : {sim::Turns::kInOrder, sim::Turns::kRandom}) {
    std::vector<Line> lines(64);
    sim::Cores cores(64, 1, turns);
    cores.run([&](unsigned core) {
      for (int i = 0; i < 100; ++i) lines[core].counter.fetch_add(1);
    });
    EXPECT_EQ(sum_of(cores, 64).misses + sum_of(cores, 64).fetched, 0u);
  }
}
TEST(Cores, RandomTurns_SameInEveryRun) {
  const auto misses = [](unsigned quantum) {
    Counter counter{0};
    sim::Cores cores(8, quantum, sim::Turns::kRandom);
    cores.run([&](unsigned) {
      for (int i = 0; i < 500; ++i) counter.fetch_add(1);
    });
    return sum_of(cores, 8).misses;
  };
  EXPECT_EQ(misses(1), misses(1));
  EXPECT_EQ(misses(16), misses(16));
  EXPECT_GT(misses(1), 3000u) << "seven of eight accesses follow another core's";
  EXPECT_LT(misses(16), 500u);
}
TEST(Cores, Places_NameTheLineAndTheSource) {
  Counter counter{0};
  sim::Cores cores(2, 1);
  cores.note_places(true);
  constexpr std::uint32_t kHere = __LINE__ + 1;
  cores.run([&](unsigned) { counter.fetch_add(1); });
  ASSERT_EQ(cores.places().size(), 1u);
  const auto& [place, misses] = *cores.places().begin();
  EXPECT_EQ(place.line, reinterpret_cast<std::uintptr_t>(&counter) / base::kCacheLine * base::kCacheLine);
  EXPECT_TRUE(std::string(place.file).ends_with("coherence_test.cpp"));
  EXPECT_EQ(place.row, kHere);
  EXPECT_EQ(misses, 1u);
}

// ---- the strategies

template <class Shape>
void set_shards(Shape& shape, unsigned shards) {
  if constexpr (requires { shape.shards; }) shape.shards = shards;
}

template <class S>
CoherenceCount count(CoherenceOptions options, unsigned shards = 0) {
  pool::PoolShape shape{.slots = sim::coherence_slots(options), .slot_bytes = 16};
  set_shards(shape, shards != 0 ? shards : options.cores);
  return sim::coherence<typename S::template Pool<CoherentAtomics>>(shape, options);
}

// The cores use a pool in these ways.
struct Case {
  const char* name;
  unsigned quantum;
  Workload workload = Workload::kOwnSlots;
  unsigned held = 4;
};
// `long`: more slots at a time than a thread's cache holds.
constexpr Case kCases[] = {
    {"own", 1},
    {"own", 16},
    {"own", 256},
    {"long", 16, Workload::kOwnSlots, 256},
    {"exchange", 1, Workload::kExchange},
    {"exchange", 16, Workload::kExchange},
    {"exchange", 256, Workload::kExchange},
};

CoherenceOptions options_for(unsigned cores, const Case& which) {
  CoherenceOptions options{.cores = cores,
                           .quantum = which.quantum,
                           .pairs = which.quantum == 1 ? std::clamp(2048 / cores, 16u, 64u) : std::max(which.quantum, 64u),
                           .warm_up = 16,
                           .workload = which.workload,
                           .held = which.held};
  if (which.held > 64) {
    options.pairs = 4 * which.held;
    options.warm_up = 2 * which.held;
  }
  return options;
}

// ---- what the figures say

template <class S>
double misses(unsigned cores, const Case& which, unsigned shards = 0) {
  return count<S>(options_for(cores, which), shards).misses_per_pair();
}

TEST(Coherence, OneSharedStack_GrowsWithTheCores) {
  double former = misses<pool::TaggedStack>(2, kCases[0]);
  for (const unsigned cores : {4u, 16u, 64u, 256u}) {
    const double now = misses<pool::TaggedStack>(cores, kCases[0]);
    EXPECT_GT(now, 1.5 * former) << cores;
    former = now;
  }
}

TEST(Coherence, BestPool_AnyWork_FlatOnAnyCores) {
  for (const Case& which : kCases) {
    // Threads that hold more than their arrays do meet in the words, which eight cores' slots share here.
    const double bound = which.held > 64 ? 0.15 : 0.1;
    for (const unsigned cores : kCores) EXPECT_LE(misses<pool::Best>(cores, which), bound) << which.name << ", " << cores;
  }
}

// Article 1 on 8 cores, 1 to 16 pools: "more pools than cores do not help".
constexpr unsigned kPools[] = {1, 2, 4, 8, 16};
template <class S>
std::vector<double> by_pools(const Case& which) {
  std::vector<double> figures;
  for (const unsigned pools : kPools) figures.push_back(misses<S>(8, which, pools));
  return figures;
}
template <class S>
void more_pools_than_cores_do_not_help() {
  for (const unsigned quantum : kQuanta) {
    const std::vector<double> own = by_pools<S>({"own", quantum});
    EXPECT_GT(own[0], own[3]) << "as many pools as cores help";
    EXPECT_EQ(own[3], 0.0);
    EXPECT_EQ(own[4], own[3]) << "more do not";
    // A slot that goes home to the pool of another core meets that core there, however many pools there are.
    const std::vector<double> exchange = by_pools<S>({"exchange", quantum, Workload::kExchange});
    EXPECT_EQ(exchange[4], exchange[3]);
  }
}
TEST(Coherence, Article1_RoundRobin_MorePoolsThanCoresDoNotHelp) {
  more_pools_than_cores_do_not_help<pool::StacksByThread>();
}
TEST(Coherence, Article1_CurrentProcessor_MorePoolsThanCoresDoNotHelp) {
  more_pools_than_cores_do_not_help<pool::StacksByCpu>();
}
// Its second factor: with a pool for each core, whose operations never meet, cores write to the same lines unless these are
// padded.
TEST(Coherence, Article1_Unpadded_FalselyShared) {
  const Case own{"own", 1};
  EXPECT_EQ(misses<pool::OwnStacks<pool::Padded>>(8, own), 0.0);
  EXPECT_GE(misses<pool::OwnStacks<pool::Packed>>(8, own), 2.0) << "the heads' line, in acquire and in release";
}
// A hash lets threads meet while pools stay empty: there more pools do help.
TEST(Coherence, Article1_Hash_MorePoolsThanCoresHelp) {
  const std::vector<double> own = by_pools<pool::StacksByHash>({"own", 1});
  EXPECT_GT(own[3], 0.0);
  EXPECT_LT(own[4], own[3]);
}

}  // namespace
}  // namespace freehold
