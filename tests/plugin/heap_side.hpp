// SPDX-License-Identifier: MIT
// The operations on heaps and timers that the program and the plugin both have, each compiled into itself.
#pragma once
#include <array>
#include <cstddef>

#include "freehold/heap/private_heap.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/timer_wheel.hpp"

namespace freehold::test {

struct HeapCalls {
  void* (*make)();
  void (*end)(void* heap);
  void* (*allocate)(void* heap, std::size_t bytes);
  void (*deallocate)(void* heap, void* block);
  void (*release_all)(void* heap);
};
struct TimerCalls {
  void* (*make)();
  void (*end)(void* timers);
  timer::TimerId (*create)(void* timers, timer::Callback callback);
  bool (*set)(void* timers, timer::TimerId id, timer::TimePoint time);
  bool (*destroy)(void* timers, timer::TimerId id);
  std::size_t (*advance)(void* timers, timer::TimePoint now);
};
inline constexpr std::size_t kHeaps = 2, kTimers = 4;

struct HeapSide {
  std::array<HeapCalls, kHeaps> heaps;
  std::array<TimerCalls, kTimers> timers;
};

namespace {  // each side has its own

template <class H>
[[nodiscard]] HeapCalls heap_calls() {
  return {[]() -> void* { return new H; }, [](void* h) { delete static_cast<H*>(h); },
          [](void* h, std::size_t bytes) { return static_cast<H*>(h)->allocate(bytes); },
          [](void* h, void* block) { static_cast<H*>(h)->deallocate(block); },
          [](void* h) { static_cast<H*>(h)->release_all(); }};
}
template <class T>
[[nodiscard]] TimerCalls timer_calls() {
  return {[]() -> void* { return new T; },
          [](void* t) { delete static_cast<T*>(t); },
          [](void* t, timer::Callback callback) { return static_cast<T*>(t)->create(callback); },
          [](void* t, timer::TimerId id, timer::TimePoint time) { return timer::is_set(static_cast<T*>(t)->set(id, time)); },
          [](void* t, timer::TimerId id) { return static_cast<T*>(t)->destroy(id); },
          [](void* t, timer::TimePoint now) { return static_cast<T*>(t)->advance(now).fired; }};
}

[[nodiscard, maybe_unused]] HeapSide this_heap_side() {
  return {{heap_calls<heap::PrivateHeap>(), heap_calls<heap::OwnerLockedHeap>()},
          {timer_calls<timer::TimerWheel<timer::AnyThread>>(), timer_calls<timer::TimerQueue<timer::AnyThread>>(),
           timer_calls<timer::TimerWheel<>>(), timer_calls<timer::TimerQueue<>>()}};
}

}  // namespace
}  // namespace freehold::test
