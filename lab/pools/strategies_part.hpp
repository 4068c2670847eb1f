// SPDX-License-Identifier: MIT
// The definition of fill_strategies(), for the source files that instantiate it.
#pragma once
#include <string>
#include <utility>

#include "lab/pools/run.hpp"
#include "lab/pools/strategies.hpp"

namespace freehold::lab::pools {

// Counting pools are slower, so only article 1's experiment uses them.
template <class S>
Report run_strategy(const Job& job) {
  if (job.counted) return run_crc_on<pool::CountedPool<S>>(job, make_plain<pool::CountedPool<S>>);
  return run_on<pool::NativePool<S>>(job, make_plain<pool::NativePool<S>>);
}

template <class S>
double bookkeeping_of(std::uint32_t slot_bytes) {
  if constexpr (pool::is_bounded<S>()) return S::kBookkeepingBytes;
  return heap_bookkeeping(slot_bytes);
}

template <class P>
inline constexpr bool kIsDistributed = requires(const P& pool) { pool.shards(); };

template <std::size_t kPart, pool::PoolStrategy... S, std::size_t... kIndex>
void fill_strategies(StrategyTable& table, pool::StrategyList<S...>, std::index_sequence<kIndex...>) {
  const auto fill = [&table]<class Strategy, std::size_t kAt> {
    if constexpr (kAt % kStrategyParts == kPart)
      table[kAt] = {std::string(Strategy::kName),
                    std::string(pool::kStudy<Strategy>.source),
                    Kind::kStrategy,
                    kIsDistributed<pool::NativePool<Strategy>>,
                    run_strategy<Strategy>,
                    bookkeeping_of<Strategy>};
  };
  (fill.template operator()<S, kIndex>(), ...);
}

template <std::size_t kPart>
void fill_strategies(StrategyTable& table) {
  fill_strategies<kPart>(table, pool::Strategies{}, std::make_index_sequence<pool::Strategies::kCount>{});
}

}  // namespace freehold::lab::pools
