// SPDX-License-Identifier: MIT
// The life of the purger thread (purger_thread.hpp) as one word that threads wait on.
//
//   kNone -> kStarting -> kAwake (begin, started) <-> kAsleep (nothing due; wake) -> kEnding -> kNone (end)
//   kStarting or kAwake -> kCramped: it cannot work on the stack it has; the next begin(), or end(), joins it.
//
//   Invariant: the thread sleeps without a time-out only while nothing is due. Due memory comes with a note, set and asked
//   before wake(), cleared after kAsleep was stored, seq_cst both (DueNote::note): of the two threads one sees the other,
//   so the word itself may be relaxed there.
//
// Any thread, except what is marked. Explored in tests/model/purger_model.cpp.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/alloc/return/purge_due.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

// Threads that make other calls to the system than malloc and free may in a process that has confined itself, and the thread
// that confines it: store buffering, so that one of them sees the other.
template <sync::Atomics A>
class OtherCalls {
 public:
  constexpr OtherCalls() noexcept = default;

  // Between these the caller makes them, if it sees after begin() that the process is not confined yet.
  void begin() noexcept {
    under_way_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the fences order it
    A::fence(std::memory_order_seq_cst);
  }
  void end() noexcept { under_way_.fetch_sub(1, std::memory_order_release); }  // release: the calls were made before
  // After the caller has said that the process is confined, and forbid_more(): none is made any more once they are over.
  static void forbid_more() noexcept { A::fence(std::memory_order_seq_cst); }
  [[nodiscard]] bool are_over() const noexcept { return under_way_.load(std::memory_order_acquire) == 0; }
  // In a fork's child, which has no other threads.
  void forget() noexcept { under_way_.store(0, std::memory_order_relaxed); }

 private:
  typename A::template atomic<std::uint32_t> under_way_{0};
};

struct PurgerOrders {
  // Release and acquire: the thread's handle and stack, from the starter to the thread and to the thread that joins it.
  static constexpr auto kStarted = std::memory_order_release;
  static constexpr auto kSeeStarted = std::memory_order_acquire;
  // The same by way of a thread that gave up, whose exchange hands on what the starter released.
  static constexpr auto kTakeOver = std::memory_order_acquire;
};

template <sync::Atomics A, class Orders = PurgerOrders>
class PurgerState {
 public:
  constexpr PurgerState() noexcept = default;

  // Returns whether the thread is there, or being started. Relaxed: a glance.
  [[nodiscard]] bool exists() const noexcept {
    const std::uint32_t state = word_.load(std::memory_order_relaxed);
    return state != kNone && state != kCramped;
  }

  // --- the thread that starts it ------------------------------------------------------------------------------------

  enum class Begun : std::uint8_t { kNo, kYes, kCramped };  // kCramped: yes, but there is a thread to join first
  [[nodiscard]] Begun begin() noexcept {
    std::uint32_t state = kNone;
    if (exchange(state, kStarting, Orders::kTakeOver)) return Begun::kYes;
    return state == kCramped && exchange(state, kStarting, Orders::kTakeOver) ? Begun::kCramped : Begun::kNo;
  }
  void started(bool created) noexcept {
    word_.store(created ? kAwake : kNone, Orders::kStarted);
    A::notify_all_shared(word_);
  }

  // --- the thread itself --------------------------------------------------------------------------------------------

  // Returns once started() was called: what its starter wrote before is visible.
  void wait_for_start() noexcept {
    while (word_.load(Orders::kSeeStarted) == kStarting) A::wait_shared(word_, std::uint32_t{kStarting});
  }
  void give_up_cramped() noexcept {
    std::uint32_t state = kAwake;
    (void)exchange(state, kCramped, std::memory_order_relaxed);  // else it is to end already
  }
  // Steps while something is due, and sleeps else, until it is to end. `round_ns`: between two rounds.
  template <class Step>
  void run(Step step, std::uint64_t round_ns) noexcept {
    while (!is_ending()) {
      std::uint32_t state = kAwake;
      if (word_.load(std::memory_order_relaxed) == kAwake) {  // relaxed: only we leave it, except at the end
        A::wait_shared(word_, state, round_ns);
        if (round(step) != Due::kNothing || !exchange(state, kAsleep, std::memory_order_relaxed)) continue;
        if (round(step) != Due::kNothing) {
          wake();
          continue;
        }
      }
      A::wait_shared(word_, std::uint32_t{kAsleep});
    }
  }

  // --- threads that free --------------------------------------------------------------------------------------------

  // Something became due, and was noted.
  void wake() noexcept {
    if (word_.load(std::memory_order_relaxed) == kAsleep) [[unlikely]]
      wake_slow();
  }

  // The same, and the thread does not wait for its next round, unless it begins to wait at this moment: the caller asks
  // again.
  void hurry() noexcept {
    wake();
    A::notify_all_shared(word_);
  }

  // --- the thread that ends it --------------------------------------------------------------------------------------

  // Has it end between two steps; `join` waits until it is gone. Returns once it is gone, and whether this call ended it.
  template <class Join>
  bool end(Join join) noexcept {
    for (std::uint32_t state; (state = word_.load(Orders::kSeeStarted)) != kNone;) {
      if (state == kStarting || state == kEnding) {  // another thread's work, which is short
        A::wait_shared(word_, state);
        continue;
      }
      if (!exchange(state, kEnding, std::memory_order_relaxed)) continue;  // relaxed: the load acquired
      A::notify_all_shared(word_);
      join();
      word_.store(kNone, std::memory_order_release);
      A::notify_all_shared(word_);
      return true;
    }
    return false;
  }
  // In a fork's child, which has no such thread.
  void forget() noexcept { word_.store(kNone, std::memory_order_relaxed); }

 private:
  enum : std::uint32_t { kNone, kStarting, kAwake, kAsleep, kCramped, kEnding };

  [[nodiscard]] bool exchange(std::uint32_t& seen, std::uint32_t next, std::memory_order order) noexcept {
    // relaxed on failure: nothing is read then.
    return word_.compare_exchange_strong(seen, next, order, std::memory_order_relaxed);
  }
  // Relaxed: the thread takes nothing over from the thread that ends it.
  [[nodiscard]] bool is_ending() const noexcept { return word_.load(std::memory_order_relaxed) == kEnding; }
  template <class Step>
  [[nodiscard]] Due round(Step step) noexcept {
    Due due = Due::kLater;
    while (!is_ending() && (due = step()) == Due::kNow) continue;
    return due;
  }
  void wake_slow() noexcept {
    std::uint32_t asleep = kAsleep;
    // relaxed: the word alone says it.
    if (exchange(asleep, kAwake, std::memory_order_relaxed)) A::notify_all_shared(word_);
  }

  typename A::template atomic<std::uint32_t> word_{kNone};
};

}  // namespace freehold::alloc
