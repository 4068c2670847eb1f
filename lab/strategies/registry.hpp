// SPDX-License-Identifier: MIT
// Every pool strategy, by one line. Write x.hpp in this folder with a pool and its descriptor (concept.hpp says how),
// include it here and add its descriptor: concept check, conformance, model exploration, order mutants, coherence golden,
// stress, bench row and the listing of `freehold pools` follow by themselves.
#pragma once
#include <cstddef>
#include <string_view>

#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/single_thread.hpp"  // in no list: it is for one thread
#include "freehold/pool/tagged_stack.hpp"
#include "lab/strategies/cpu_stacks.hpp"
#include "lab/strategies/distributed.hpp"
#include "lab/strategies/lock_free_bitmap_tree.hpp"
#include "lab/strategies/lock_free_bits.hpp"
#include "lab/strategies/lock_free_flags.hpp"
#include "lab/strategies/locked_bitmap_tree.hpp"
#include "lab/strategies/locked_bits.hpp"
#include "lab/strategies/locked_flags.hpp"
#include "lab/strategies/magazines.hpp"
#include "lab/strategies/roaming_stacks.hpp"
#include "lab/strategies/system_new.hpp"

namespace freehold::pool {

/// A list of strategies.
/// @tparam S  the strategies
template <PoolStrategy... S>
struct StrategyList {
  /// How many there are.
  static constexpr std::size_t kCount = sizeof...(S);
};

/// Every strategy, in the order of the tables.
using Strategies = StrategyList<Best,                //
                                SystemNew,           //
                                LockFreeFlags,       //
                                LockedFlags,         //
                                LockedBits,          //
                                LockedBitmapTree,    //
                                LockFreeBits,        //
                                LockFreeBitmapTree,  //
                                TaggedStack,         //
                                StacksByThread,      //
                                StacksByHash,        //
                                StacksByCpu,         //
                                RoamingStacksByCpu,  //
                                CpuStacks,           //
                                Magazines            //
                                >;

/// Calls `f.template operator()<S>()` for every strategy S of a list, in its order.
/// @param f  what is called
template <class F, PoolStrategy... S>
constexpr void for_each_strategy(F&& f, StrategyList<S...>) {
  (f.template operator()<S>(), ...);
}
/// The same for every strategy that there is.
/// @param f  what is called
template <class F>
constexpr void for_each_strategy(F&& f) {
  for_each_strategy(f, Strategies{});
}

}  // namespace freehold::pool
