// SPDX-License-Identifier: MIT
// Adapters of Freehold's structures for the timed loops.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap_scope.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "lab/timers/article_wheel.hpp"
#include "lab/timers/deque_timer_queue.hpp"
#include "lab/timers/structure.hpp"

// dlmalloc's; null where the build has not got its source.
extern "C" {
[[gnu::weak]] void* create_mspace(std::size_t capacity, int locked);
[[gnu::weak]] std::size_t destroy_mspace(void* space);
[[gnu::weak]] void* mspace_malloc(void* space, std::size_t bytes);
[[gnu::weak]] void mspace_free(void* space, void* block);
}

namespace freehold::lab::timers {

// How often the calling thread slept for the lock of a structure.
inline thread_local std::uint64_t t_lock_waits = 0;
struct CountLockWaits {
  static void taken() noexcept {}
  static void waited() noexcept { ++t_lock_waits; }
};
struct CountedAnyThread : timer::AnyThread {
  using Mutex = sync::Mutex<sync::NativeAtomics, CountLockWaits>;
};

// The resolution of a home's timers: ticks of a millisecond at most, unless the home says otherwise.
template <class Home>
inline constexpr Nanoseconds kOrderOf = std::chrono::milliseconds(1);
template <class Home>
  requires requires(Home& home) { home.timers.kTick; }
inline constexpr Nanoseconds kOrderOf<Home> = decltype(Home::timers)::kTick;

// Home: has `timers`, which have the functions of timer::Timers that the loops use, and their memory.
template <class Home>
class OwnTimers {
 public:
  static constexpr Nanoseconds kOrder = kOrderOf<Home>;

  explicit OwnTimers(std::uint32_t timers, bool = false) : ids_(timers), home_(timers) {}

  void begin() noexcept {
    start_ = now_;
    home_.timers.advance(now_);  // destroyed timers can be used again
  }
  void create(std::uint32_t i) noexcept {
    ids_[i] = home_.timers.create([i] { g_fired.note(i); });
  }
  void destroy(std::uint32_t i) noexcept { home_.timers.destroy(ids_[i]); }
  void set(std::uint32_t i, Nanoseconds time) noexcept { home_.timers.set(ids_[i], start_ + time); }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept { return home_.timers.cancel(ids_[i]); }
  void look(Nanoseconds time) noexcept { home_.timers.advance(start_ + time); }
  static void await() noexcept {}
  void expire() noexcept {
    now_ = start_ + kHour + kOrder;
    home_.timers.advance(now_);
  }

 private:
  timer::TimePoint start_{};
  timer::TimePoint now_{};
  std::vector<timer::TimerId> ids_;
  Home home_;
};

// An mspace, if the build has dlmalloc's source (lab/CMakeLists.txt).
class Mspace {
 public:
  Mspace() = default;
  Mspace(const Mspace&) = delete;
  Mspace& operator=(const Mspace&) = delete;
  ~Mspace() { ::destroy_mspace(space_); }
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t) noexcept { return ::mspace_malloc(space_, bytes); }
  void deallocate(void* block, std::size_t = 0, std::size_t = 0) noexcept { ::mspace_free(space_, block); }

 private:
  void* const space_ = ::create_mspace(0, 0);
};

// A structure of containers, Timers<Allocator, Locking>, on the program's heap; or on a private one, which the structure's
// lock guards as well; or with its containers alone on a private one.
template <template <class...> class Timers, class Locking>
struct OnProgramHeap {
  explicit OnProgramHeap(std::uint32_t) {}
  Timers<std::allocator<std::byte>, Locking> timers;
};
template <template <class...> class Timers, class Locking, class Heap = heap::OwnerLockedHeap>
struct OnPrivateHeap {
  using Allocator = heap::HeapAllocator<std::byte, Heap>;
  explicit OnPrivateHeap(std::uint32_t) {}
  Heap heap;
  Timers<Allocator, Locking> timers{Allocator(heap)};
};
template <template <class...> class Timers, class Locking>
struct ContainersOnPrivateHeap {
  using Allocator = heap::HeapAllocator<std::byte, heap::OwnerLockedHeap>;
  using Objects = std::allocator<std::byte>;
  explicit ContainersOnPrivateHeap(std::uint32_t) {}
  heap::OwnerLockedHeap heap;
  Timers<Allocator, Locking, Objects> timers{Allocator(heap), Objects()};
};
// On the program's heap, but what allocates is in a scope of a private one: where Freehold is the program's malloc.
template <template <class...> class Timers, class Locking>
struct InScopes {
  explicit InScopes(std::uint32_t) {}
  struct Scoped {
    timer::TimerId create(timer::Callback callback) noexcept {
      const HeapScope scope(heap);
      return inner.create(callback);
    }
    timer::SetResult set(timer::TimerId id, timer::TimePoint time) noexcept {
      const HeapScope scope(heap);
      return inner.set(id, time);
    }
    // A block that is freed finds its heap by itself.
    bool cancel(timer::TimerId id) noexcept { return inner.cancel(id); }
    bool destroy(timer::TimerId id) noexcept { return inner.destroy(id); }
    void advance(timer::TimePoint now) noexcept { inner.advance(now); }

    PrivateHeap heap;
    Timers<std::allocator<std::byte>, Locking> inner;
  } timers;
};
template <class Locking>
using ArticleOnProgramHeap = OnProgramHeap<timer::DequeTimerQueue, Locking>;
template <class Locking>
using ArticleOnPrivateHeap = OnPrivateHeap<timer::DequeTimerQueue, Locking>;
template <class Locking>
using ArticleOnMspace = OnPrivateHeap<timer::DequeTimerQueue, Locking, Mspace>;
template <class Locking>
using ArticleInScopes = InScopes<timer::DequeTimerQueue, Locking>;
template <class Locking>
struct ArticleOnPoolResource {
  explicit ArticleOnPoolResource(std::uint32_t) {}
  std::pmr::unsynchronized_pool_resource heap;
  timer::DequeTimerQueue<std::pmr::polymorphic_allocator<std::byte>, Locking> timers{&heap};
};
template <class Locking>
using ArticleContainersPrivate = ContainersOnPrivateHeap<timer::DequeTimerQueue, Locking>;
template <class Locking>
using ArticleWheelContainersPrivate = ContainersOnPrivateHeap<ArticleWheel, Locking>;
template <class Locking>
using ArticleWheelOnProgramHeap = OnProgramHeap<ArticleWheel, Locking>;
template <class Locking>
using ArticleWheelOnPrivateHeap = OnPrivateHeap<ArticleWheel, Locking>;

// A structure with its own memory for so many timers.
template <class T>
struct Bounded {
  explicit Bounded(std::uint32_t most) : timers(most) {}
  T timers;
};
template <class Locking>
using IntrusiveQueue = Bounded<timer::TimerQueue<Locking>>;
template <class Locking>
using Wheel = Bounded<timer::TimerWheel<Locking>>;

// Not a structure of timers: a line for each, which set and cancel write, and a handle that says where. Nothing fires.
class Lines {
 public:
  static constexpr Nanoseconds kOrder{1};

  explicit Lines(std::uint32_t timers, bool) : handles_(timers), lines_(timers) {}

  static void begin() noexcept {}
  void create(std::uint32_t i) noexcept { handles_[i] = i; }
  static void destroy(std::uint32_t) noexcept {}
  void set(std::uint32_t i, Nanoseconds time) noexcept {
    Line& line = lines_[handles_[i]];
    line.time = time;
    line.is_armed = true;
  }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept { return std::exchange(lines_[handles_[i]].is_armed, false); }
  static void look(Nanoseconds) noexcept {}
  static void await() noexcept {}
  static void expire() noexcept {}

 private:
  struct alignas(64) Line {
    Nanoseconds time{};
    bool is_armed = false;
  };

  std::vector<std::uint64_t> handles_;
  std::vector<Line> lines_;
};
static_assert(Structure<Lines>);

}  // namespace freehold::lab::timers
