// Every pool strategy, by one line. Write x.hpp in this folder with a pool and its descriptor (concept.hpp says how), add
// the descriptor here: concept check, conformance, model exploration, order mutants, coherence golden, stress, bench row and
// the listing of `freehold pools` follow by themselves.
#pragma once
#include <cstddef>
#include <string_view>

#include "freehold/pool/strategies.hpp"  // generated: includes every header of this folder

namespace freehold::pool {

template <PoolStrategy... S>
struct StrategyList {
  static constexpr std::size_t kCount = sizeof...(S);
};

// In the order of the tables.
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

// Calls f.template operator()<S>() for every strategy of the list, in its order.
template <class F, PoolStrategy... S>
constexpr void for_each_strategy(F&& f, StrategyList<S...>) {
  (f.template operator()<S>(), ...);
}
template <class F>
constexpr void for_each_strategy(F&& f) {
  for_each_strategy(f, Strategies{});
}

}  // namespace freehold::pool
