// SPDX-License-Identifier: MIT
// Native atomics with a hook before every change of an atomic: a test interrupts an operation at a chosen instruction and
// lets "another thread" run there, in one thread and always the same way. For the interleavings that review found; the
// systematic search is the simulator's.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

#include "freehold/sync/atomics.hpp"

namespace freehold::test {

struct HookedAtomics {
  using Native = sync::NativeAtomics;

  // Called with the address of the atomic that is about to change. Not called from within itself.
  static inline std::function<void(const void*)> hook;

  // Runs `other` once, just before the change number `moment` from now on, counted from 1; counts them in `changes` until
  // then.
  static void interrupt_at(unsigned moment, unsigned& changes, std::function<void()> other) {
    hook = [moment, &changes, other = std::move(other)](const void*) {
      if (++changes != moment) return;
      const auto run = other;
      hook = nullptr;
      run();
    };
  }

  template <class T>
  class atomic {
   public:
    constexpr atomic() noexcept = default;
    constexpr atomic(T value) noexcept : value_(value) {}
    [[nodiscard]] T load(std::memory_order order = std::memory_order_seq_cst) const noexcept { return value_.load(order); }
    void store(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { before().store(v, order); }
    T exchange(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { return before().exchange(v, order); }
    T fetch_add(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { return before().fetch_add(v, order); }
    T fetch_sub(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { return before().fetch_sub(v, order); }
    T fetch_or(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { return before().fetch_or(v, order); }
    T fetch_and(T v, std::memory_order order = std::memory_order_seq_cst) noexcept { return before().fetch_and(v, order); }
    bool compare_exchange_weak(T& e, T v, std::memory_order success, std::memory_order failure) noexcept {
      return before().compare_exchange_strong(e, v, success, failure);
    }
    bool compare_exchange_strong(T& e, T v, std::memory_order success, std::memory_order failure) noexcept {
      return before().compare_exchange_strong(e, v, success, failure);
    }

   private:
    std::atomic<T>& before() noexcept {
      if (hook) {
        const auto current = hook;  // may be replaced while it runs
        current(this);
      }
      return value_;
    }
    std::atomic<T> value_{};
  };

  template <class T>
  using var = Native::var<T>;

  static void fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }
  static void pause() noexcept {}
  static void yield() noexcept { Native::yield(); }
  static void light_fence() noexcept { Native::light_fence(); }
  static void heavy_fence() noexcept { Native::heavy_fence(); }
  static bool may_fence_heavily() noexcept { return Native::may_fence_heavily(); }
  static std::uint32_t thread_number() noexcept { return Native::thread_number(); }
  static std::uint32_t thread_id() noexcept { return Native::thread_id(); }
  template <class T>
  static T& per_thread() noexcept {
    return Native::per_thread<T>();
  }
  template <class T>
  static T& per_process() noexcept {
    return Native::per_process<T>();
  }
  static void at_thread_exit(sync::ExitCall call) noexcept { Native::at_thread_exit(call); }
  static unsigned cpu_id() noexcept { return 0; }
  static void wait(const atomic<std::uint32_t>&, std::uint32_t) noexcept { std::abort(); }  // one thread: a deadlock
  static void notify_one(atomic<std::uint32_t>&) noexcept {}
  static void notify_all(atomic<std::uint32_t>&) noexcept {}
  template <class T>
  static constexpr T decide(T value, T) noexcept {
    return value;
  }
};
static_assert(sync::Atomics<HookedAtomics>);

// Runs `scene(moment, changes)` with moment 1, 2, ... as long as there is such a moment: it calls interrupt_at() with both.
// Returns how many there were.
template <class Scene>
unsigned at_every_moment(const Scene& scene) {
  for (unsigned moment = 1;; ++moment) {
    unsigned changes = 0;
    scene(moment, changes);
    HookedAtomics::hook = nullptr;
    if (changes < moment) return moment - 1;
  }
}

}  // namespace freehold::test
