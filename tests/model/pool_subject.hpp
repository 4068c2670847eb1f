// SPDX-License-Identifier: MIT
// A pool under the simulated machine, with its type left behind: the scenarios of pool_scenarios.hpp are compiled once, for
// every strategy of the registry and every mutant of one.
// A mutant of an order is the same pool with one member of S::kOrders weakened by one step.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lab/strategies/registry.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/inside.hpp"

namespace freehold::model {

class AnyPool {
 public:
  virtual ~AnyPool() = default;
  virtual void* acquire() noexcept = 0;
  virtual void release(void* slot) noexcept = 0;
  virtual void flush() noexcept = 0;  // what the pool keeps for the calling thread goes back
  [[nodiscard]] virtual bool invariants_hold() const noexcept = 0;
};

template <class P>
class AnyPoolOf final : public AnyPool {
 public:
  explicit AnyPoolOf(const pool::PoolShape& shape) : pool_(shape) {}
  void* acquire() noexcept override { return pool_.acquire(); }
  void release(void* slot) noexcept override { pool_.release(slot); }
  void flush() noexcept override {
    if constexpr (requires { pool_.flush(); }) pool_.flush();
  }
  [[nodiscard]] bool invariants_hold() const noexcept override {
    if constexpr (pool::Inside::kHasInvariants<decltype(pool_)>)
      return pool::Inside::check_invariants(pool_);
    else
      return true;
  }

 private:
  P pool_;
};

struct Subject {
  std::string name;
  bool finds_last = true;
  bool many_steps = false;
  std::unique_ptr<AnyPool> (*make)(const pool::PoolShape&) = nullptr;
};

template <class P>
Subject subject_of(std::string name, bool finds_last, bool many_steps = false) {
  return {std::move(name), finds_last, many_steps,
          [](const pool::PoolShape& shape) -> std::unique_ptr<AnyPool> { return std::make_unique<AnyPoolOf<P>>(shape); }};
}

template <class S>
constexpr bool has_many_steps() noexcept {
  return pool::kStudy<S>.has_many_steps;
}

template <class S, class A = sim::SimAtomics>
Subject subject() {
  return subject_of<typename S::template Pool<A>>(std::string(S::kName), S::kFindsLast, has_many_steps<S>());
}

// True if the scenarios explore the pool: something of it goes through its Atomics, and its threads do not spin for each
// other.
template <class S>
inline constexpr bool kIsModelled =
    !pool::kStudy<S>.spins &&
    !std::is_same_v<typename S::template Pool<sim::SimAtomics>, typename S::template Pool<sync::NativeAtomics>>;

// ---- mutants of the orders

template <class S>
using OrdersOf = std::remove_cvref_t<decltype(S::kOrders)>;

template <class S>
inline constexpr std::size_t kOrderCount =
    std::is_empty_v<OrdersOf<S>> ? 0 : sizeof(OrdersOf<S>) / sizeof(std::memory_order);

template <class S>
constexpr auto orders_as_array() noexcept {
  return std::bit_cast<std::array<std::memory_order, kOrderCount<S>>>(S::kOrders);
}

// The one-step weakenings of an order; the second is used by acq_rel only.
constexpr std::memory_order weaker(std::memory_order order, unsigned which) noexcept {
  switch (order) {
    case std::memory_order_seq_cst: return std::memory_order_acq_rel;
    case std::memory_order_acq_rel: return which == 0 ? std::memory_order_acquire : std::memory_order_release;
    default: return std::memory_order_relaxed;
  }
}
constexpr unsigned weakenings(std::memory_order order) noexcept {
  return order == std::memory_order_relaxed ? 0 : order == std::memory_order_acq_rel ? 2 : 1;
}
constexpr std::string_view text(std::memory_order order) noexcept {
  switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume: return "consume";
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
  }
  return "?";
}

struct OrderMutant {
  std::size_t order;  // its place among the members
  Subject subject;
  std::string_view unobservable;
};

template <class S, std::size_t kIndex, unsigned kWhich>
constexpr OrdersOf<S> weakened_orders() noexcept {
  auto orders = orders_as_array<S>();
  orders[kIndex] = weaker(orders[kIndex], kWhich);
  return std::bit_cast<OrdersOf<S>>(orders);
}

template <class S, std::size_t kIndex, unsigned kWhich>
void add_order_mutant(std::vector<OrderMutant>& mutants) {
  constexpr std::memory_order kOrder = orders_as_array<S>()[kIndex];
  if constexpr (kWhich < weakenings(kOrder)) {
    using P = typename S::template Pool<sim::SimAtomics, sync::IgnoreContention, weakened_orders<S, kIndex, kWhich>()>;
    std::string name = std::string(S::kName) + "/order " + std::to_string(kIndex) + " " + std::string(text(kOrder)) +
                       " to " + std::string(text(weaker(kOrder, kWhich)));
    mutants.push_back({kIndex, subject_of<P>(std::move(name), S::kFindsLast), pool::why_unobservable<S>(kIndex)});
  }
}

template <class S>
std::vector<OrderMutant> order_mutants() {
  std::vector<OrderMutant> mutants;
  if constexpr (kOrderCount<S> != 0 && kIsModelled<S>) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      ((add_order_mutant<S, kIndex, 0>(mutants), add_order_mutant<S, kIndex, 1>(mutants)), ...);
    }(std::make_index_sequence<kOrderCount<S>>{});
  }
  return mutants;
}

}  // namespace freehold::model
