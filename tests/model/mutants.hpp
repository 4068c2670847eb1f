// SPDX-License-Identifier: MIT
// The parts of mutants: one memory order that is another, and atomics that do in two steps what must be one.
#pragma once
#include <atomic>

#include "sim/sim_atomics.hpp"

// The orders of `Base`, of which the member `kOrder` is std::memory_order_`order`.
#define FREEHOLD_WEAKER(Name, Base, kOrder, order)            \
  struct Name : Base {                                        \
    static constexpr auto kOrder = std::memory_order_##order; \
  }

namespace freehold::model {

// The operations that a Torn atomic does by a load and a store.
enum Tears : unsigned { kExchange = 1, kCompareExchange = 2, kAnd = 4, kOr = 8, kSubtract = 16 };

template <class T, unsigned kTears>
class Torn : public sim::atomic<T> {
 public:
  using Whole = sim::atomic<T>;
  using Whole::Whole;

  T exchange(T value, std::memory_order order) noexcept {
    return (kTears & kExchange) != 0 ? change([=](T) { return value; }) : Whole::exchange(value, order);
  }
  T fetch_and(T value, std::memory_order order) noexcept {
    return (kTears & kAnd) != 0 ? change([=](T old) { return old & value; }) : Whole::fetch_and(value, order);
  }
  T fetch_or(T value, std::memory_order order) noexcept {
    return (kTears & kOr) != 0 ? change([=](T old) { return old | value; }) : Whole::fetch_or(value, order);
  }
  T fetch_sub(T value, std::memory_order order) noexcept {
    return (kTears & kSubtract) != 0 ? change([=](T old) { return old - value; }) : Whole::fetch_sub(value, order);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    if ((kTears & kCompareExchange) == 0) return Whole::compare_exchange_weak(expected, desired, success, failure);
    return change_if(expected, desired);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    if ((kTears & kCompareExchange) == 0) return Whole::compare_exchange_strong(expected, desired, success, failure);
    return change_if(expected, desired);
  }

 private:
  template <class F>
  T change(F&& next) noexcept {
    const T old = this->load(std::memory_order_acquire);
    this->store(next(old), std::memory_order_release);
    return old;
  }
  bool change_if(T& expected, T desired) noexcept {
    const T old = this->load(std::memory_order_acquire);
    if (old == expected) return this->store(desired, std::memory_order_release), true;
    expected = old;
    return false;
  }
};

// A lock over it excludes no other thread.
template <class T>
struct Open : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  bool compare_exchange_strong(T&, T, std::memory_order, std::memory_order) noexcept { return true; }
};

// A kernel without membarrier.
struct NoMembarrier : sim::SimAtomics {
  static bool may_fence_heavily() noexcept { return false; }
  static void heavy_fence() noexcept {}
};
// A mutant: other threads are not fenced.
struct NoHeavyFence : sim::SimAtomics {
  static void heavy_fence() noexcept {}
};

template <unsigned kTears>
struct Tearing : sim::SimAtomics {
  template <class T>
  using atomic = Torn<T, kTears>;
};

}  // namespace freehold::model
