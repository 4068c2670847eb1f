// SPDX-License-Identifier: MIT
// The whole engine on simulated cores (sim/engine): the cost of a malloc and its free in coherence misses and lock
// hand-overs on 4, 16 and 64 cores, by workload and size. Cores take turns of one access and do nothing but malloc and free,
// which is the worst case. Turns move a figure by half, so each is the median over seeds. Held in three ways: near the
// golden figures; flat from 4 cores on, except the rows of kNotFlat; and without a lock, except the rows of kLocked.
// --rewrite-golden on the command line rewrites the file, and the commit says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/engine/engine_atomics.hpp"
#include "sim/engine/whole_engine.hpp"

namespace freehold {
namespace {

using sim::EngineCount;
using sim::EngineWorkload;

constexpr std::array<unsigned, 3> kCores{4, 16, 64};
constexpr std::array<std::size_t, 8> kSizes{16, 64, 512, 4096, 32768, 65536, 262144, 1048576};

struct RowName {
  EngineWorkload workload;
  std::size_t bytes;
  auto operator<=>(const RowName&) const = default;
};

// ---- expected today --------------------------------------------------------------------------------------------------

// Rows whose misses per pair grow from 4 to 16 or 64 cores by more than kFlatRatio and kFlatSlack allow. A row that no
// longer grows at all fails until it leaves the list; a row may join it only in a commit that says why.
constexpr double kFlatRatio = 1.1;
constexpr double kFlatSlack = 0.1;       // misses per pair
constexpr double kNoGrowthSlack = 0.02;  // the same, for a row that leaves the list
struct Expected {
  EngineWorkload workload;
  std::vector<std::size_t> sizes;
};
const std::vector<Expected> kNotFlat{
    // Slots: the search for free slots walks the stripes and last users of all others.
    {EngineWorkload::kNeighbour, {4096, 32768}},
    {EngineWorkload::kProducer, {4096, 32768}},
    {EngineWorkload::kChurn, {16, 64, 512, 4096, 32768}},
    // Blocks above 32 KiB: the account of free memory, and chunks of other groups of CPUs.
    {EngineWorkload::kNeighbour, {1048576}},
    {EngineWorkload::kProducer, {65536, 262144, 1048576}},
    {EngineWorkload::kChurn, {65536, 262144, 1048576}},
    {EngineWorkload::kPurge, {1048576}},
};

// Rows in which a lock changes hands more than kFewHandOvers times a pair on 4, 16 or 64 cores.
constexpr double kFewHandOvers = 0.1;
const std::vector<Expected> kLocked{};

// Figures may be off the golden ones by so much: another compiler, or a change of no consequence, moves the turns.
constexpr double kGoldenRatio = 0.3;
constexpr double kGoldenSlack = 0.15;

// ---- the rows --------------------------------------------------------------------------------------------------------

using Counts = std::array<EngineCount, 5>;

Counts counted(sim::EngineOptions options) {
  Counts counts;
  for (EngineCount& count : counts) {
    count = sim::count_engine(options);
    ++options.seed;
  }
  return counts;
}
template <class Figure>
double median(const Counts& counts, Figure figure) {
  std::array<double, std::tuple_size_v<Counts>> all;
  std::ranges::transform(counts, all.begin(), figure);
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// Misses a pair for each of kCores, then hand-overs a pair.
using Figures = std::array<double, 2 * kCores.size()>;
using Rows = std::map<RowName, Figures>;

const Rows& measured() {
  static const Rows all = [] {
    Rows rows;
    for (const EngineWorkload workload : sim::kEngineWorkloads)
      for (const std::size_t bytes : kSizes) {
        Figures& row = rows[{workload, bytes}];
        for (std::size_t i = 0; i < kCores.size(); ++i) {
          const auto counts = counted({.workload = workload, .bytes = bytes, .cores = kCores[i]});
          row[i] = median(counts, [](const EngineCount& count) { return count.per_pair(count.misses); });
          row[kCores.size() + i] = median(counts, [](const EngineCount& count) { return count.per_pair(count.hand_overs); });
        }
      }
    return rows;
  }();
  return all;
}

std::string text_of(const RowName& name) { return std::string(name_of(name.workload)) + " " + std::to_string(name.bytes); }

bool is_in(const std::vector<Expected>& list, const RowName& name) {
  for (const Expected& expected : list)
    if (expected.workload == name.workload && std::ranges::find(expected.sizes, name.bytes) != expected.sizes.end())
      return true;
  return false;
}

TEST(EngineScale, MissesPerPair_FlatFrom4CoresOn) {
  for (const auto& [name, row] : measured()) {
    const double most = std::max(row[1], row[2]);
    if (is_in(kNotFlat, name))
      EXPECT_GT(most, row[0] + kNoGrowthSlack) << text_of(name) << " is flat now: take it off kNotFlat";
    else
      EXPECT_LE(most, kFlatRatio * row[0] + kFlatSlack)
          << text_of(name) << ": misses a pair on 16 or 64 cores, against the bound from 4 cores";
  }
}

TEST(EngineScale, LockHandOversPerPair_Few) {
  for (const auto& [name, row] : measured()) {
    const double most = std::max({row[3], row[4], row[5]});
    if (is_in(kLocked, name))
      EXPECT_GT(most, kFewHandOvers) << text_of(name) << " hardly takes a lock now: take it off kLocked";
    else
      EXPECT_LE(most, kFewHandOvers) << text_of(name) << ": hand-overs a pair on 4, 16 or 64 cores";
  }
}

// It begins, gets its one array, and ends.
TEST(EngineScale, ThreadThatUsesOneSize_ThreeLocks) {
  const EngineCount count = sim::count_engine({.workload = EngineWorkload::kChurn, .bytes = 16, .cores = 4});
  EXPECT_LE(count.per_pair(count.locks) * sim::kChurnThreadPairs, 3.1);
}

// ---- memory nodes ----------------------------------------------------------------------------------------------------

// The lines that another of two nodes served, of all that came, at most, on 4, 16 and 64 cores. A block's first line is one
// that its own memory serves.
struct Far {
  EngineWorkload workload;
  std::vector<std::size_t> sizes;
  double most;
};
const std::vector<Far> kFar{
    {EngineWorkload::kMany, {16, 4096, 32768, 65536, 262144}, 0.02},
    {EngineWorkload::kMany, {512, 1048576}, 0.05},
    {EngineWorkload::kProducer, {16, 512}, 0.05},
    // All blocks are at home; what is left are the registry's lock and the lists behind it.
    {EngineWorkload::kChurn, {16, 512, 4096}, 0.3},
};

double far_share(EngineWorkload workload, std::size_t bytes, unsigned cores, unsigned nodes) {
  const auto counts = counted({.workload = workload, .bytes = bytes, .cores = cores, .nodes = nodes});
  EXPECT_GE(counts[0].per_pair(counts[0].served), 1.0) << text_of({workload, bytes});
  return median(counts, [](const EngineCount& count) { return double(count.far) / double(count.served); });
}

TEST(EngineScale, OwnBlocksOnTwoOrFourNodes_ServedAtHome) {
  for (const std::size_t bytes : kSizes)
    for (const unsigned cores : kCores)
      for (const unsigned nodes : {2U, 4U}) {
        // Threads that begin before there are chunks for each CPU may share one: by the turns it is up to a tenth.
        const double most = bytes == 262144 ? 0.12 : 0.05;
        EXPECT_LE(far_share(EngineWorkload::kOwn, bytes, cores, nodes), most)
            << bytes << " bytes, " << cores << " cores, " << nodes << " nodes";
      }
}

TEST(EngineScale, TwoNodes_LinesServedByTheOther_Few) {
  for (const auto& [workload, sizes, most] : kFar)
    for (const std::size_t bytes : sizes)
      for (const unsigned cores : kCores)
        EXPECT_LE(far_share(workload, bytes, cores, 2), most) << text_of({workload, bytes}) << ", " << cores << " cores";
}

// Cores 0 and 1 on one node, 2 and 3 on the other.
TEST(EngineScale, Node_OfTheFirstTouchServes) {
  struct alignas(4096) Page {
    sim::EngineAtomics::atomic<unsigned> lines[128];  // 4 bytes each: line 0, 16, 32 …
  };
  const auto page = std::make_unique<Page>();
  unsigned turn = 0;
  sim::Cores cores(4, 1, sim::Turns::kInOrder, 2);
  std::array<std::uint64_t, 4> far{}, served{};
  const auto in_turn = [&](unsigned me, unsigned at, auto&& what) {
    while (turn != at) cores.next();
    const auto before = cores.tally(me);
    what();
    far[at] = cores.tally(me).far - before.far;
    served[at] = cores.tally(me).served - before.served;
    ++turn;
    cores.progress();
  };
  cores.run([&](unsigned me) {
    if (me == 0) in_turn(me, 0, [&] { page->lines[0].store(1); });       // first touch: its memory, at home
    if (me == 2) in_turn(me, 1, [&] { (void)page->lines[16].load(); });  // another line of the page: far
    if (me == 1) in_turn(me, 2, [&] { (void)page->lines[0].load(); });   // a copy at home
    if (me == 3) in_turn(me, 3, [&] { page->lines[0].store(2); });       // copies elsewhere go: far
  });
  EXPECT_EQ(served, (std::array<std::uint64_t, 4>{1, 1, 1, 1}));
  EXPECT_EQ(far, (std::array<std::uint64_t, 4>{0, 1, 0, 1}));
}

// More caches of the largest class than a budget that is the same on every machine has room for.
TEST(EngineScale, LargestClassOn384Cores_StaysInTheCaches) {
  const EngineCount count =
      sim::count_engine({.workload = EngineWorkload::kOwn, .bytes = 32768, .cores = 384, .quantum = 64, .pairs = 64});
  EXPECT_LE(count.per_pair(count.misses), kFlatSlack);
}

TEST(EngineScale, OneCore_NoMissNoHandOver) {
  for (const EngineWorkload workload : sim::kEngineWorkloads)
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{262144}}) {
      const EngineCount count = sim::count_engine({.workload = workload, .bytes = bytes, .cores = 1});
      EXPECT_GE(count.pairs, 128u);
      EXPECT_EQ(count.misses, 0u) << text_of({workload, bytes});
      EXPECT_EQ(count.hand_overs, 0u) << text_of({workload, bytes});
    }
}

// ---- golden ----------------------------------------------------------------------------------------------------------

constexpr const char* kGolden = FREEHOLD_ENGINE_GOLDEN;

bool asked_to_rewrite() {
  std::ifstream arguments("/proc/self/cmdline");
  for (std::string argument; std::getline(arguments, argument, '\0');)
    if (argument == "--rewrite-golden") return true;
  return false;
}

void rewrite() {
  std::ofstream file(kGolden);
  file
      << "# The engine on simulated cores (tests/model/engine_scale_test.cpp --rewrite-golden), a pair of malloc and free:\n"
         "# workload, bytes; coherence misses on 4, 16, 64 cores; lock hand-overs on 4, 16, 64 cores\n";
  for (const auto& [name, row] : measured()) {
    file << text_of(name);
    for (const double figure : row) {
      char text[32];
      std::snprintf(text, sizeof text, " %.3f", figure);
      file << text;
    }
    file << "\n";
  }
}

std::map<std::string, Figures> golden() {
  std::map<std::string, Figures> rows;
  std::ifstream file(kGolden);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string workload, bytes;
    words >> workload >> bytes;
    for (double& figure : rows[workload + " " + bytes]) words >> figure;
  }
  return rows;
}

TEST(EngineScale, Figures_NearTheGolden) {
  if (asked_to_rewrite()) return rewrite();
  auto known = golden();
  for (const auto& [name, row] : measured()) {
    const auto place = known.find(text_of(name));
    ASSERT_NE(place, known.end()) << text_of(name) << " has no golden figures";
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(row[i], place->second[i], kGoldenRatio * place->second[i] + kGoldenSlack)
          << text_of(name) << ": " << (i < kCores.size() ? "misses" : "hand-overs") << " a pair on "
          << kCores[i % kCores.size()] << " cores\nIf it is meant, run with --rewrite-golden and say why.";
    known.erase(place);
  }
  for (const auto& [name, row] : known) ADD_FAILURE() << name << ": no such row any more";
}

// ---- the counter itself ----------------------------------------------------------------------------------------------

using Lock = sync::Mutex<sim::EngineAtomics, sync::CountWaits<sim::EngineAtomics>>;

TEST(EngineScale, LockPassedRound_EveryTakeButTheFirstIsAHandOver) {
  for (const unsigned n : {1U, 2U, 8U}) {
    Lock lock;
    unsigned turn = 0;
    sim::Cores cores(n, 1, sim::Turns::kRandom);
    cores.run([&](unsigned me) {
      for (unsigned i = 0; i < 10; ++i) {
        while (turn != me) cores.next();
        lock.lock();
        lock.unlock();
        turn = (me + 1) % n;
        cores.progress();
      }
    });
    sim::Tally sum;
    for (unsigned i = 0; i < n; ++i) sum += cores.tally(i);
    EXPECT_EQ(sum.locks, 10u * n);
    EXPECT_EQ(sum.hand_overs, n == 1 ? 0u : 10u * n - 1);
    EXPECT_EQ(sum.waits, 0u);
    // One line: it comes with the take, and stays for the unlock.
    EXPECT_EQ(sum.misses + sum.fetched, sum.hand_overs);
  }
}
TEST(EngineScale, LockHeldForLong_OthersSleep) {
  Lock lock;
  sim::Cores cores(4, 1);
  cores.run([&](unsigned) {
    lock.lock();
    for (unsigned i = 0; i < 1000; ++i) cores.next();
    cores.progress();
    lock.unlock();
  });
  std::uint64_t waits = 0;
  for (unsigned i = 0; i < 4; ++i) waits += cores.tally(i).waits;
  EXPECT_GE(waits, 3u);
  EXPECT_EQ(lock.waits().count(), waits);
}

TEST(EngineScale, Places_AccountForAllMisses) {
  const EngineCount count =
      sim::count_engine({.workload = EngineWorkload::kProducer, .bytes = 4096, .cores = 8, .note_places = true});
  double sum = 0;
  for (const sim::MissPlace& place : count.places) sum += place.misses_per_pair;
  // Noted while all cores are counted, the others from each core's own beginning to its end: nearly the same.
  EXPECT_NEAR(sum, count.per_pair(count.misses), 0.1 * sum);
  ASSERT_FALSE(count.places.empty());
  EXPECT_NE(count.places.front().source.find(".hpp:"), std::string::npos) << count.places.front().source;
  EXPECT_FALSE(count.places.front().object.empty());
}

TEST(EngineScale, SameInEveryRun) {
  const auto misses = [] {
    return sim::count_engine({.workload = EngineWorkload::kProducer, .bytes = 4096, .cores = 8}).misses;
  };
  const std::uint64_t first = misses();
  EXPECT_GT(first, 0u);
  EXPECT_EQ(misses(), first);
}

TEST(EngineScale, ImpossibleOptions_Refused) {
  EXPECT_THROW((void)sim::count_engine({.bytes = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.bytes = sim::kMaxEngineBytes + 1}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.cores = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.cores = sim::kMaxCores + 1}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.quantum = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.nodes = 0}), std::invalid_argument);
  EXPECT_THROW((void)sim::count_engine({.cores = 2, .nodes = 3}), std::invalid_argument);
}

}  // namespace
}  // namespace freehold
