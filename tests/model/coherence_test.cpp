// The coherence counter on pools whose misses can be told by hand, and every strategy of the registry against its golden
// figures: misses per pair by workload, quantum and cores. --rewrite-golden on the command line rewrites the file, and the
// commit says why the figures changed.
#include "sim/coherence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "freehold/pool/registry.hpp"

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
  EXPECT_THROW((void)sim::coherence<Dry>(0, {.cores = 1, .held = 65}), std::invalid_argument);
}

// ---- the strategies

template <class S>
inline constexpr bool kIsSimulated =
    !std::is_same_v<typename S::template Pool<CoherentAtomics>, typename S::template Pool<sync::NativeAtomics>>;

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

std::string_view text(Workload workload) { return workload == Workload::kOwnSlots ? "own" : "exchange"; }

// One line for each strategy, workload and quantum; the figures of all numbers of cores.
std::string row_name(std::string_view strategy, Workload workload, unsigned quantum) {
  return std::string(strategy) + " " + std::string(text(workload)) + " " + std::to_string(quantum);
}
template <class S>
std::string row(Workload workload, unsigned quantum) {
  std::string figures;
  for (const unsigned cores : kCores) {
    const CoherenceOptions options{.cores = cores,
                                   .quantum = quantum,
                                   .pairs = quantum == 1 ? std::clamp(2048 / cores, 16u, 64u) : std::max(quantum, 64u),
                                   .warm_up = 16,
                                   .workload = workload};
    char figure[32];
    std::snprintf(figure, sizeof figure, " %7.3f", count<S>(options).misses_per_pair());
    figures += figure;
  }
  return figures;
}

using Rows = std::map<std::string, std::string>;
constexpr const char* kGolden = FREEHOLD_COHERENCE_GOLDEN;

Rows golden() {
  Rows rows;
  std::ifstream file(kGolden);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string strategy, workload, quantum;
    words >> strategy >> workload >> quantum;
    std::string figures, rest;
    std::getline(words, rest);
    rows[strategy + " " + workload + " " + quantum] = rest;
  }
  return rows;
}

bool asked_to_rewrite() {
  std::ifstream arguments("/proc/self/cmdline");
  for (std::string argument; std::getline(arguments, argument, '\0');)
    if (argument == "--rewrite-golden") return true;
  return false;
}

TEST(Coherence, Strategies_MissesPerPair_AsInTheGolden) {
  Rows known = golden();
  std::ostringstream fresh;
  fresh << "# Coherence misses per pair of acquire and release on simulated cores (sim/coherence.hpp), by\n"
           "# strategy, workload, quantum in accesses, and number of cores. Written by model_coherence --rewrite-golden.\n"
           "#\n# strategy workload quantum; cores: 1 2 4 8 16 32 64 128 256\n";
  pool::for_each_strategy([&]<class S>() {
    if constexpr (kIsSimulated<S>) {
      for (const Workload workload : {Workload::kOwnSlots, Workload::kExchange}) {
        for (const unsigned quantum : kQuanta) {
          const std::string name = row_name(S::kName, workload, quantum);
          const std::string figures = row<S>(workload, quantum);
          fresh << name << figures << "\n";
          const auto place = known.find(name);
          if (place == known.end()) {
            std::printf("[ no golden ] %s%s\n", name.c_str(), figures.c_str());
          } else {
            EXPECT_TRUE(asked_to_rewrite() || figures == place->second)
                << name << figures << "\ngolden" << place->second
                << "\nIf it is meant, run with --rewrite-golden and say why.";
            known.erase(place);
          }
        }
      }
    }
  });
  if (asked_to_rewrite()) {
    std::ofstream(kGolden) << fresh.str();
    return;
  }
  for (const auto& [name, figures] : known) ADD_FAILURE() << name << ": no such strategy any more";
}

}  // namespace
}  // namespace freehold
