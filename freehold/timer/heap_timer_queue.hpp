// The timer queue of standard containers on a private heap of its own, as in "Practical testing 30: reducing contention":
// the lock that guards the queue guards its memory, so its users contend with each other and with nobody else. Threads, cost
// and promises: those of ContainerTimerQueue.
#pragma once
#include <cstddef>
#include <optional>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/timer/container_timer_queue.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

template <class Locking = SingleThreaded>
class HeapTimerQueue {
 public:
  static constexpr bool kShared = Locking::kShared;

  // The heap can be limited: create() and set() then find no memory.
  explicit HeapTimerQueue(const heap::HeapOptions& options = {.name = "timers"}) : heap_(options), queue_(heap_) {}

  [[nodiscard]] TimerId create(Callback callback, void* context) noexcept { return queue_.create(callback, context); }
  SetResult set(TimerId id, TimePoint time) noexcept { return queue_.set(id, time); }
  bool cancel(TimerId id) noexcept { return queue_.cancel(id); }
  bool destroy(TimerId id) noexcept { return queue_.destroy(id); }
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept { return queue_.expiry(id); }
  [[nodiscard]] TimerStats stats() const noexcept { return queue_.stats(); }
  [[nodiscard]] TimePoint now() const noexcept { return queue_.now(); }
  [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept { return queue_.next_expiry(); }
  Progress advance(TimePoint now, std::size_t budget = kUnlimited) noexcept { return queue_.advance(now, budget); }

 private:
  heap::OwnerLockedHeap heap_;  // before the queue, which lies in it
  ContainerTimerQueue<heap::HeapAllocator<std::byte, heap::OwnerLockedHeap>, Locking> queue_;
};
static_assert(Timers<HeapTimerQueue<>>);

}  // namespace freehold::timer
