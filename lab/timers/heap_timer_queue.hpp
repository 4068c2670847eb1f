// SPDX-License-Identifier: MIT
// The timer queue of standard containers on a private heap, as in "Practical testing 30: reducing contention": the lock that
// guards the queue guards its memory, so its users contend with each other only. Threads, cost and promises: those of
// DequeTimerQueue.
#pragma once
#include <cstddef>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"
#include "lab/timers/deque_timer_queue.hpp"

namespace freehold::timer {

// A base, so that the heap is there before the queue that lies in it, and longer.
struct HeapOfTimers {
  heap::OwnerLockedHeap memory;
};
template <class Locking>
using QueueOnHeap = DequeTimerQueue<heap::HeapAllocator<std::byte, heap::OwnerLockedHeap>, Locking>;

template <class Locking = SingleThreaded>
class HeapTimerQueue : HeapOfTimers, public QueueOnHeap<Locking> {
 public:
  // The heap can be limited: create() and set() then find no memory.
  explicit HeapTimerQueue(const heap::HeapOptions& options = {.name = "timers"})
      : HeapOfTimers{heap::OwnerLockedHeap(options)}, QueueOnHeap<Locking>(memory) {}
};
static_assert(Timers<HeapTimerQueue<>>);

}  // namespace freehold::timer
