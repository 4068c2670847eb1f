// SPDX-License-Identifier: MIT
// Every pool strategy. Write x.hpp in freehold/strategies with a pool and its descriptor; include it here, add its
// descriptor to the list and a line to the studies. Concept check, conformance, model exploration, order mutants, coherence
// golden, stress, bench row and the listing of `freehold pools` follow by themselves.
//
// A strategy is one header with a pool template and a struct that describes it:
//
//   struct TaggedStack {
//     static constexpr std::string_view kName = "tagged-stack";         // on command lines and in tables
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
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "freehold/pool/best_pool_core.hpp"
#include "freehold/pool_strategies.hpp"
#include "lab/strategies/system_new.hpp"

namespace freehold::pool {

// A descriptor of a pool, as the head of this file describes it.
template <class S>
concept PoolStrategy = requires {
  { S::kName } -> std::convertible_to<std::string_view>;
  { S::kFindsLast } -> std::convertible_to<bool>;
  S::kOrders;
} && SlotPool<NativePool<S>> && SlotPool<CountedPool<S>> && requires(const CountedPool<S>& pool) {
  { pool.contention() } noexcept -> std::same_as<sync::Contention>;
};

// An order of S::kOrders, by its place among the members (nested ones counted where they stand), that stays although its
// weakening cannot be observed, and why.
struct Unobservable {
  std::size_t order = 0;
  std::string_view reason;
};

// Experiments and models know this of a strategy.
struct Study {
  std::string_view source{};                     // the paper or project that the design comes from
  std::span<const Unobservable> unobservable{};  // orders whose weakening no scenario of all pools sees
  bool has_many_steps = false;                   // models explore stale reads with fewer preemptions
  bool spins = false;                            // threads spin for each other: the lock has a model, not the pool
};

// It takes a thread that walks from slot to slot behind another's sweep, which is all that happens in these two models.
template <std::size_t... Orders>
inline constexpr std::array kSeenInShortage{
    Unobservable{Orders, "seen by tests/model/shortage_model.cpp and search_model.cpp"}...};
inline constexpr std::array kOfBest{
    Unobservable{6, "the heavy fence before publishes the same, and all look at the arrays in one order"}};
inline constexpr std::array kOfHazardStack{Unobservable{2, "seen by tests/model/hazard_model.cpp"},
                                           Unobservable{4, "as a stack's push in tests/model/search_model.cpp"},
                                           Unobservable{5, "as a stack's push in tests/model/search_model.cpp"},
                                           Unobservable{7, "seen by tests/model/shortage_model.cpp and search_model.cpp"},
                                           Unobservable{8, "seen by tests/model/shortage_model.cpp and search_model.cpp"}};

template <class S>
inline constexpr Study kStudy = S::kStudy;  // a strategy that a test makes has its own
template <>
inline constexpr Study kStudy<Best>{"article 2, the pool its author wished for", kOfBest, true};
template <>
inline constexpr Study kStudy<SystemNew>{"article 2, S1"};
template <>
inline constexpr Study kStudy<LockFreeFlags>{"article 2, S2", kSeenInShortage<0, 1, 2, 3, 4>};
template <>
inline constexpr Study kStudy<LockedFlags>{"article 2, S3"};
template <>
inline constexpr Study kStudy<SpinLockedFlags>{.source = "article 2, S3, a spin lock", .spins = true};
template <>
inline constexpr Study kStudy<TicketLockedFlags>{.source = "article 2, S3, a ticket lock", .spins = true};
template <>
inline constexpr Study kStudy<LockedBits32>{"article 2, S4"};
template <>
inline constexpr Study kStudy<LockedBits>{"article 2, S4, words of 64"};
template <>
inline constexpr Study kStudy<LockedBitmapTree32>{"article 2, S5"};
template <>
inline constexpr Study kStudy<LockedBitmapTree>{"article 2, S5, words of 64, one lock"};
template <>
inline constexpr Study kStudy<LockFreeBits>{"article 2, S4, without its lock", kSeenInShortage<0, 1, 2, 3, 4>};
template <>
inline constexpr Study kStudy<LockFreeBitmapTree>{"article 2, S5, without its lock", kSeenInShortage<1, 3, 4>};
template <>
inline constexpr Study kStudy<TaggedStack>{"article 1, Pool_t (SList)"};
template <>
inline constexpr Study kStudy<StacksByThread>{"article 1, Array_of_pools_t, round robin", kSeenInShortage<0, 2, 3, 4, 5>};
template <>
inline constexpr Study kStudy<StacksByHash>{"article 1, Array_of_pools_t, hash of the thread id",
                                            kSeenInShortage<0, 2, 3, 4, 5>};
template <>
inline constexpr Study kStudy<StacksByCpu>{"article 1, Array_of_pools_t, current processor", kSeenInShortage<0, 2, 3, 4, 5>};
template <>
inline constexpr Study kStudy<RoamingStacksByThread>{
    "article 1, Array_of_pools_t, round robin, released to the thread's own", kSeenInShortage<0, 2, 3, 4, 5>};
template <>
inline constexpr Study kStudy<RoamingStacksByCpu>{
    "article 1, Array_of_pools_t, current processor, released to the current one", kSeenInShortage<0, 2, 3, 4, 5>};
template <>
inline constexpr Study kStudy<HazardStack>{"article 2, its last line; Michael 2004", kOfHazardStack, true};
template <>
inline constexpr Study kStudy<CpuStacks>{"restartable sequences"};
template <>
inline constexpr Study kStudy<ThreadStacks>{"article 2, its postscript: thread-local storage"};
template <>
inline constexpr Study kStudy<Magazines>{"Bonwick and Adams 2001"};

// The reason why a mutant of S with this order weakened may survive; empty: it must be killed.
template <class S>
[[nodiscard]] constexpr std::string_view why_unobservable(std::size_t order) noexcept {
  for (const Unobservable& known : kStudy<S>.unobservable)
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

// The distributed pool of the article to the letter, for its experiment: a thread pops from the stack whose index it keeps
// and pushes there; an empty stack gives null. `Layout`: Padded is the article's. It is not in the list of all strategies,
// whose tests and workloads move slots between threads. (As a program uses it: array_of_pools.hpp.)
template <class Layout>
struct OwnStacks {
  template <sync::Atomics A, class Contention = sync::IgnoreContention, TaggedStackOrders O = TaggedStackOrders{}>
  using Pool = RoamingStacksPool<ByThread<A>, Contention, DistributedStackOrders{O, {}}, Fail, Layout>;
};

}  // namespace freehold::pool
