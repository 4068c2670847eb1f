// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>

#include "lab/pools/job.hpp"
#include "lab/pools/library_pools.hpp"
#include "lab/pools/run.hpp"
#include "lab/pools/strategies.hpp"
#include "lab/strategies/registry.hpp"

namespace freehold::lab::pools {
namespace {

template <class P>
Report run_plain(const Job& job) {
  return run_on<P>(job, make_plain<P>);
}

// For one thread: without locks, as in article 2's test 3.
template <class S>
void add_unlocked(std::vector<Candidate>& all) {
  all.push_back({std::string(S::kName) + "-unlocked", std::string(pool::kStudy<S>.source) + ", for one thread",
                 Kind::kUnlocked, false, run_plain<pool::UnlockedPool<S>>,
                 [](std::uint32_t) { return S::kBookkeepingBytes; }});
}

// Article 1's array of pools, in its experiment alone: a thread finds the slots of one pool only.
template <class Layout>
Report run_array(const Job& job) {
  using Array = pool::OwnStacks<Layout>;
  if (job.counted) return run_crc_on<pool::CountedPool<Array>>(job, make_plain<pool::CountedPool<Array>>);
  return run_crc_on<pool::NativePool<Array>>(job, make_plain<pool::NativePool<Array>>);
}
bool is_array(const Candidate& candidate) {
  return candidate.run == run_array<pool::Padded> || candidate.run == run_array<pool::Packed>;
}

static_assert(kOurs == pool::Best::kName);

void add_strategies(std::vector<Candidate>& all) {
  StrategyTable strategies;
  fill_strategies<0>(strategies);
  fill_strategies<1>(strategies);
  fill_strategies<2>(strategies);
  static_assert(kStrategyParts == 3);
  std::ranges::move(strategies, std::back_inserter(all));
}

std::vector<Candidate> make_candidates() {
  std::vector<Candidate> all;
  add_strategies(all);
  all.push_back({"array-of-pools", "article 1, Array_of_pools_t: its own layout; a thread pops and pushes by its index",
                 Kind::kStrategy, true, run_array<pool::Padded>});
  all.push_back({"array-of-pools-packed", "the same without alignment and padding: false sharing", Kind::kStrategy, true,
                 run_array<pool::Packed>});
  all.push_back({"boost-pool", "Boost.Pool with a mutex", Kind::kLibrary, false, run_plain<BoostPool>});
  all.push_back({"pmr-synchronized", "std::pmr::synchronized_pool_resource", Kind::kLibrary, false,
                 run_plain<SynchronizedPoolResource>});
  all.push_back({std::string(kOursAlone), "for one thread: a stack of addresses", Kind::kUnlocked, false,
                 run_plain<pool::SingleThreadPool>, [](std::uint32_t) { return 8.0; }});
  add_unlocked<pool::Best>(all);
  add_unlocked<pool::LockedFlags>(all);
  add_unlocked<pool::LockedBits32>(all);
  add_unlocked<pool::LockedBits>(all);
  add_unlocked<pool::LockedBitmapTree32>(all);
  add_unlocked<pool::LockedBitmapTree>(all);
  all.push_back({"boost-pool-unlocked", "Boost.Pool, for one thread", Kind::kUnlocked, false, run_plain<UnlockedBoostPool>});
  all.push_back({"pmr-unsynchronized", "std::pmr::unsynchronized_pool_resource, for one thread", Kind::kUnlocked, false,
                 run_plain<UnsynchronizedPoolResource>});
  all.push_back({"baseline", "a bare thread-local list of free slots", Kind::kBaseline, false, run_plain<ThreadFreeList>});
  return all;
}

}  // namespace

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = make_candidates();
  return all;
}

bool runs(const Candidate& candidate, const Row& row) {
  if (is_array(candidate)) return row.test == Trial::kCrc;
  if (candidate.kind == Kind::kUnlocked) return row.threads == 1;
  // The baseline's slots do not travel between threads, and are no array that could be half used.
  if (candidate.kind == Kind::kBaseline) return row.test != Trial::kRing && row.context == Context::kFresh;
  return true;
}

}  // namespace freehold::lab::pools
