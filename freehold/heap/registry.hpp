// SPDX-License-Identifier: MIT
// A list of the private heaps for any thread, of one shared object: for fork, so that no child finds a heap half changed,
// and for reports, those of readers outside the process included (`freehold stats PID`). A heap stays in the registry of the
// shared object that made it, even if another one ends it.
//
//   Invariant: while a thread is in fork(), it holds the registry's lock, then every heap's locks.
//
// Any thread. A heap's beginning and end: one lock, a handful of instructions.
#pragma once
#include <cstddef>

#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/live_heap.hpp"

namespace freehold::heap {

struct Registry;

// A heap's place in the registry; what may be done with it.
class RegisteredHeap {
 public:
  struct Calls {
    void (*before_fork)(void* heap) noexcept;
    void (*after_fork)(void* heap) noexcept;
    HeapStats (*stats)(void* heap) noexcept;
    void (*add_to)(const void* heap, LiveHeapLayout& layout) noexcept;
  };

  RegisteredHeap(void* heap, const char* name, const Calls& calls) noexcept;
  void end() noexcept;

 private:
  friend struct Registry;
  Registry& registry_;
  // As LiveHeap has them.
  void* heap_;
  const char* name_;
  const Calls* calls_;
  RegisteredHeap* next_ = nullptr;
  RegisteredHeap* previous_ = nullptr;
};

// The policy of heaps that are registered; the other one is none, for heaps of a simulated machine.
class Registered {
 public:
  template <class Heap>
  explicit Registered(Heap& heap) noexcept : place_(&heap, heap.name(), kCalls<Heap>) {}
  void end() noexcept { place_.end(); }

 private:
  template <class Heap>
  static constexpr RegisteredHeap::Calls kCalls{
      [](void* heap) noexcept { static_cast<Heap*>(heap)->before_fork(); },
      [](void* heap) noexcept { static_cast<Heap*>(heap)->after_fork(); },
      [](void* heap) noexcept { return static_cast<Heap*>(heap)->stats(); },
      [](const void* heap, LiveHeapLayout& layout) noexcept { static_cast<const Heap*>(heap)->add_to(layout); },
  };
  RegisteredHeap place_;
};

/// Calls report(context, stats) for every PrivateHeap of the calling shared object, the youngest first.
/// @param report   must neither make nor end a heap
/// @param context  its first argument
/// Cost: O(heaps), while none can begin or end.
void for_each_heap(void (*report)(void* context, const HeapStats& stats), void* context);

}  // namespace freehold::heap
