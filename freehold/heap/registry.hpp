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
#include <cstdint>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
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
    std::size_t (*trim)(void* heap) noexcept;
  };

  RegisteredHeap(void* heap, const char* name, const Calls& calls) noexcept;
  // Calls at_end(context) in one step with the end, between two forks.
  void end(void (*at_end)(void* context) noexcept, void* context) noexcept;
  void end() noexcept {
    end([](void*) noexcept {}, nullptr);
  }
  // As the constructor, within at_end() of another.
  struct Within {};
  RegisteredHeap(Within, void* heap, const char* name, const Calls& calls) noexcept;
  void set_scoped(alloc::ScopedHeap& scoped) noexcept { scoped_ = &scoped; }
  // Before the first scope: malloc_trim() trims the registry's heaps, too, and a fork by a handler of signals finds out that
  // it came amid a call of a scope's heap.
  void begin_scopes(const alloc::ScopeEngine& engine, const Calls& ended) noexcept;

 private:
  friend struct Registry;
  Registry& registry_;
  // As LiveHeap has them.
  void* heap_;
  [[maybe_unused]] const char* name_;  // read from outside the process
  const Calls* calls_;
  RegisteredHeap* next_ = nullptr;
  RegisteredHeap* previous_ = nullptr;
  alloc::ScopedHeap* scoped_ = nullptr;
};

// The policies: heaps that are registered, and those of a simulated machine, which are not.
struct Unregistered {
  template <class Heap>
  explicit Unregistered(Heap&) noexcept {}
  template <class F>
  static void end(const F& at_end) noexcept {
    at_end();
  }
  template <class Ended>
  static void begin_scopes(const alloc::ScopeEngine&) noexcept {}
  static void set_scoped(alloc::ScopedHeap&) noexcept {}
  struct Ended {
    template <class Heap>
    static void begin(Heap&) noexcept {}
    static void end() noexcept {}
  };
};
class Registered {
 public:
  template <class Heap>
  explicit Registered(Heap& heap) noexcept : place_(&heap, heap.name(), kCalls<Heap>) {}
  template <class F>
  void end(const F& at_end) noexcept {
    place_.end([](void* f) noexcept { (*static_cast<const F*>(f))(); }, const_cast<F*>(&at_end));
  }
  void set_scoped(alloc::ScopedHeap& scoped) noexcept { place_.set_scoped(scoped); }
  template <class Ended>
  void begin_scopes(const alloc::ScopeEngine& engine) noexcept {
    place_.begin_scopes(engine, kEndedCalls<Ended>);
  }

  // The place of a heap that has ended, from begin() to end().
  class Ended {
   public:
    template <class Heap>
    void begin(Heap& heap) noexcept {
      ::new (&place_) RegisteredHeap(RegisteredHeap::Within{}, &heap, heap.name(), kEndedCalls<Heap>);
    }
    void end() noexcept { std::launder(reinterpret_cast<RegisteredHeap*>(&place_))->end(); }

   private:
    alignas(RegisteredHeap) std::byte place_[sizeof(RegisteredHeap)];
  };

 private:
  template <class Heap>
  static constexpr RegisteredHeap::Calls kEndedCalls{
      [](void*) noexcept {},
      [](void*) noexcept {},
      [](void* heap) noexcept { return static_cast<Heap*>(heap)->stats(); },
      [](const void*, LiveHeapLayout& layout) noexcept { Heap::add_to(layout); },
      [](void*) noexcept { return std::size_t{0}; },
  };
  template <class Heap>
  static constexpr RegisteredHeap::Calls kCalls{
      [](void* heap) noexcept { static_cast<Heap*>(heap)->before_fork(); },
      [](void* heap) noexcept { static_cast<Heap*>(heap)->after_fork(); },
      [](void* heap) noexcept { return static_cast<Heap*>(heap)->stats(false); },
      [](const void* heap, LiveHeapLayout& layout) noexcept { static_cast<const Heap*>(heap)->add_to(layout); },
      [](void* heap) noexcept { return static_cast<Heap*>(heap)->trim(false); },
  };
  RegisteredHeap place_;
};

void report_heaps(base::Callback<void(const HeapStats& stats)> report);

/// Calls report(stats) for every PrivateHeap of the calling shared object, the youngest first.
/// @param report  takes a HeapStats; must neither make nor end a heap, nor throw
/// Cost: O(heaps), while none can begin or end.
template <class Report>
void for_each_heap(Report&& report) {
  report_heaps([&report](const HeapStats& stats) { report(stats); });
}

}  // namespace freehold::heap

namespace freehold {
using heap::for_each_heap;
}  // namespace freehold
