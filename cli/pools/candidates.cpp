#include "cli/pools/candidates.hpp"

#include "cli/pools/library_pools.hpp"
#include "cli/pools/results.hpp"
#include "cli/pools/run.hpp"
#include "freehold/pool/registry.hpp"

namespace freehold::cli::pools {
namespace {

template <class P>
Report run_plain(const Job& job) {
  return run_on<P>(job, [](const pool::PoolShape& shape, const Job&) { return P(shape); });
}

// Counting pools for article 1's experiment only: they are slower.
template <class S>
Report run_strategy(const Job& job) {
  if (job.counted) return run_plain<pool::CountedPool<S>>(job);
  return run_plain<pool::NativePool<S>>(job);
}

// A strategy's form for one thread, as article 2's test 3 has its pools.
template <class S>
void add_unlocked(std::vector<Candidate>& all) {
  all.push_back({std::string(S::kName) + "-unlocked", std::string(S::kSource) + ", for one thread", Kind::kUnlocked, false,
                 run_plain<pool::UnlockedPool<S>>});
}

template <class P>
inline constexpr bool kIsDistributed = requires(const P& pool) { pool.shards(); };

std::vector<Candidate> make_candidates() {
  std::vector<Candidate> all;
  pool::for_each_strategy([&all]<class S> {
    all.push_back({std::string(S::kName), std::string(S::kSource), Kind::kStrategy, kIsDistributed<pool::NativePool<S>>,
                   run_strategy<S>});
  });
  all.push_back({"boost-pool", "Boost.Pool with a mutex", Kind::kLibrary, false, run_plain<BoostPool>});
  all.push_back({"pmr-synchronized", "std::pmr::synchronized_pool_resource", Kind::kLibrary, false,
                 run_plain<SynchronizedPoolResource>});
  all.push_back({std::string(kOursAlone), "for one thread: a stack of addresses", Kind::kUnlocked, false,
                 run_plain<pool::SingleThread>});
  add_unlocked<pool::Best>(all);
  add_unlocked<pool::LockedFlags>(all);
  add_unlocked<pool::LockedBits>(all);
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

bool runs(const Candidate& candidate, Trial test, Context context, std::uint32_t threads) {
  if (candidate.kind == Kind::kUnlocked) return threads == 1;
  // The baseline's slots do not travel between threads, and are no array that could be half used.
  if (candidate.kind == Kind::kBaseline) return test != Trial::kRing && context == Context::kFresh;
  return true;
}

}  // namespace freehold::cli::pools
