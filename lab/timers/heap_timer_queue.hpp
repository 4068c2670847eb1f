// SPDX-License-Identifier: MIT
// The timer queue of standard containers on a private heap of its own, as in "Practical testing 30: reducing contention":
// the lock that guards the queue guards its memory, so its users contend with each other and with nobody else. Threads, cost
// and promises: those of ContainerTimerQueue.
#pragma once
#include <cstddef>
#include <optional>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"
#include "lab/timers/container_timer_queue.hpp"

namespace freehold::timer {

/// The timer queue of "Practical testing 30" on a private heap of its own.
/// @tparam Locking  SingleThreaded, or AnyThread
template <class Locking = SingleThreaded>
class HeapTimerQueue {
 public:
  /// Whether several threads may use it; see SharedTimers.
  static constexpr bool kShared = Locking::kShared;

  /// A queue without timers.
  /// @param options  of its heap, which can be limited: create() and set() then find no memory
  explicit HeapTimerQueue(const heap::HeapOptions& options = {.name = "timers"}) : heap_(options), queue_(heap_) {}

  /// Creates a timer that is not armed.
  /// @param callback  is called by advance() when the timer's time has come
  /// @param context   its first argument
  /// Returns: its handle; none if there is no memory or no room.
  [[nodiscard]] TimerId create(Callback callback, void* context) noexcept { return queue_.create(callback, context); }
  /// Arms a timer, or arms it anew.
  /// @param id    the timer
  /// @param time  when it fires
  /// Returns: see SetResult.
  SetResult set(TimerId id, TimePoint time) noexcept { return queue_.set(id, time); }
  /// Disarms a timer.
  /// @param id  the timer
  /// Returns: whether it was armed and will not fire.
  bool cancel(TimerId id) noexcept { return queue_.cancel(id); }
  /// Ends a timer, armed or not, also from its own callback.
  /// @param id  the timer
  /// Returns: whether it was there. Another thread's callback may still run.
  bool destroy(TimerId id) noexcept { return queue_.destroy(id); }
  /// The time that an armed timer was set to.
  /// @param id  the timer
  /// Returns: the time; none: the timer is not armed, or not there.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept { return queue_.expiry(id); }
  /// A snapshot; see TimerStats.
  [[nodiscard]] TimerStats stats() const noexcept { return queue_.stats(); }
  /// The latest `now` that advance() was given. Where advance() is called.
  [[nodiscard]] TimePoint now() const noexcept { return queue_.now(); }
  /// When advance() should be called next; none while no timer is armed. Not later than the earliest timer's time.
  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept { return queue_.next_expiry(); }
  /// Calls the timers that are due.
  /// @param now     the time
  /// @param budget  the most steps of work: timers fired, moved or forgotten; at least 1
  /// Returns: how many timers fired, and whether there is more to do at once.
  /// Threads: the owner; not in a callback.
  Progress advance(TimePoint now, std::size_t budget = kNoLimit) noexcept { return queue_.advance(now, budget); }

 private:
  heap::OwnerLockedHeap heap_;  // before the queue, which lies in it
  ContainerTimerQueue<heap::HeapAllocator<std::byte, heap::OwnerLockedHeap>, Locking> queue_;
};
static_assert(Timers<HeapTimerQueue<>>);

}  // namespace freehold::timer
