// SPDX-License-Identifier: MIT
// Every pool strategy, by one line. Write x.hpp in freehold/strategies with a pool and its descriptor, include it here and
// add its descriptor: concept check, conformance, model exploration, order mutants, coherence golden, stress, bench row and
// the listing of `freehold pools` follow by themselves.
//
// A strategy is one header with a pool template and a struct that describes it:
//
//   struct TaggedStack {
//     static constexpr std::string_view kName = "tagged-stack";         // on command lines and in tables
//     static constexpr std::string_view kSource = "article 1, Pool_t";  // where it comes from
//     static constexpr bool kFindsLast = true;                          // the last free slot, in any thread
//     static constexpr TaggedStackOrders kOrders{};                     // an aggregate of memory orders, may be empty
//     template <sync::Atomics A, class Contention = sync::IgnoreContention, TaggedStackOrders O = kOrders>
//     using Pool = TaggedStackPool<A, Contention, O>;
//   };
//
// and may say more:
//
//     static constexpr bool kBounded = false;              // acquire() goes on beyond PoolShape::slots
//     static constexpr double kBookkeepingBytes = 4;       // a slot, at most, beside a constant for each pool and thread
//     static constexpr bool kManySteps = true;             // models explore stale reads with fewer preemptions
//     static constexpr bool kSpins = true;                 // threads spin for each other: the lock has a model, not the pool
//     static constexpr std::array kUnobservable{Unobservable{1, "why"}};  // orders whose weakening no test can see
#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>

#include "freehold/pool/best_pool_core.hpp"
#include "freehold/pool_strategies.hpp"
#include "lab/strategies/system_new.hpp"

namespace freehold::pool {

// A descriptor of a pool, as the head of this file describes it.
template <class S>
concept PoolStrategy = requires {
  { S::kName } -> std::convertible_to<std::string_view>;
  { S::kSource } -> std::convertible_to<std::string_view>;
  { S::kFindsLast } -> std::convertible_to<bool>;
  S::kOrders;
} && SlotPool<NativePool<S>> && SlotPool<CountedPool<S>>;

// The reason why a mutant of S with this order weakened may survive; empty: it must be killed.
template <class S>
[[nodiscard]] constexpr std::string_view why_unobservable(std::size_t order) noexcept {
  if constexpr (requires { S::kUnobservable; })
    for (const Unobservable& known : S::kUnobservable)
      if (known.order == order) return known.reason;
  return {};
}

template <class S>
[[nodiscard]] constexpr bool is_bounded() noexcept {
  if constexpr (requires { S::kBounded; }) return S::kBounded;
  return true;
}

// A list of strategies.
template <PoolStrategy... S>
struct StrategyList {
  // How many there are.
  static constexpr std::size_t kCount = sizeof...(S);
};

// Every strategy, in the order of the tables.
using Strategies = StrategyList<Best,                   //
                                SystemNew,              //
                                LockFreeFlags,          //
                                LockedFlags,            //
                                SpinLockedFlags,        //
                                TicketLockedFlags,      //
                                LockedBits32,           //
                                LockedBits,             //
                                LockedBitmapTree32,     //
                                LockedBitmapTree,       //
                                LockFreeBits,           //
                                LockFreeBitmapTree,     //
                                TaggedStack,            //
                                StacksByThread,         //
                                StacksByHash,           //
                                StacksByCpu,            //
                                RoamingStacksByThread,  //
                                RoamingStacksByCpu,     //
                                HazardStack,            //
                                CpuStacks,              //
                                ThreadStacks,           //
                                Magazines               //
                                >;

// Calls `f.template operator()<S>()` for every strategy S of a list, in its order.
template <class F, PoolStrategy... S>
constexpr void for_each_strategy(F&& f, StrategyList<S...>) {
  (f.template operator()<S>(), ...);
}
// The same for every strategy that there is.
template <class F>
constexpr void for_each_strategy(F&& f) {
  for_each_strategy(f, Strategies{});
}

}  // namespace freehold::pool
