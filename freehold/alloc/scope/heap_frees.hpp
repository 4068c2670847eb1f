// SPDX-License-Identifier: MIT
// The blocks of private heaps that a thread has freed and that no heap has back yet, of all heaps mixed: an array that the
// thread's free fills as it fills those of malloc's classes, and that the thread empties where it is full. Another thread
// takes blocks out where a heap needs them now: at its limit, for exact figures, at its end.
//
//   owner:  n = frees.take_all(used, to, fence);
//   other:  n = take_from_all(arrays, fence_others, is_wanted, to, most);    // one thread at a time
//
//   Invariants: between close() and open() the owner takes nothing out, and writes an entry once at most;
//               an entry is null, or a freed block that stands in no other place.
//
// The owner's mark and `closed` are Dekker's protocol with the fence on one side only, as in ShardLock. free writes without
// an order: the second fence makes all visible that was done with the blocks before. Where no thread can fence others, that
// takes a processor whose stores become visible in their order.
// Cost: for the owner two stores and a load, and three accesses for each block; for others two system calls.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct HeapFreesOrders {
  // release: pairs with kLook; which entries are empty now, and at open() what was done with them.
  static constexpr std::memory_order kLeave = std::memory_order_release;
  static constexpr std::memory_order kLook = std::memory_order_acquire;
};

template <sync::Atomics A, class Orders = HeapFreesOrders, std::size_t kRoom = 32>
class HeapFrees {
 public:
  static constexpr std::size_t kEntries = kRoom;
  using Entry = typename A::template atomic<void*>;

  // The owner's free writes here, one entry after the other, and from the first one on again after take_all().
  Entry entries[kEntries]{};

  // Calls take(), in which the owner may read entries and make them null. `fence` orders the owner's mark before its later
  // loads, as the thread that closes expects.
  template <class Fence, class Take>
  [[gnu::always_inline]] void take_by(const Fence& fence, const Take& take) noexcept {
    for (;;) {
      taking_.store(1, std::memory_order_relaxed);  // relaxed: fenced
      fence();
      if (closed_.load(Orders::kLook) == 0) [[likely]]
        break;
      taking_.store(0, Orders::kLeave);
      sync::wait_until<A>([this] { return closed_.load(Orders::kLook) == 0; });
    }
    take();
    taking_.store(0, Orders::kLeave);
  }
  // Moves the blocks of the first `used` entries to `to`; returns how many.
  template <class Fence>
  std::size_t take_all(std::size_t used, void** to, const Fence& fence) noexcept {
    std::size_t n = 0;
    take_by(fence, [&] {
      for (std::size_t i = 0; i < used; ++i) {
        void* const block = entries[i].load(std::memory_order_relaxed);
        if (block != nullptr) to[n++] = block;
        entries[i].store(nullptr, std::memory_order_relaxed);
      }
    });
    return n;
  }

  // Returns whether some block is wanted. Any thread; a hint, and true of what happened before.
  template <class IsWanted>
  [[nodiscard]] bool has_any(const IsWanted& is_wanted) const noexcept {
    for (const Entry& entry : entries)
      if (const void* const block = entry.load(std::memory_order_relaxed); block != nullptr && is_wanted(block)) return true;
    return false;
  }
  void close() noexcept { closed_.store(1, std::memory_order_relaxed); }  // relaxed: fenced
  void open() noexcept { closed_.store(0, Orders::kLeave); }
  // Moves blocks that are wanted to `to`, `most` of them at most; returns how many. Pre: closed, and fenced since.
  template <class IsWanted>
  [[nodiscard]] std::size_t take_if(const IsWanted& is_wanted, void** to, std::size_t most) noexcept {
    sync::wait_until<A>([this] { return taking_.load(Orders::kLook) == 0; });
    std::size_t n = 0;
    for (Entry& entry : entries) {
      void* const block = entry.load(std::memory_order_relaxed);
      if (block == nullptr || n == most || !is_wanted(block)) continue;
      entry.store(nullptr, std::memory_order_relaxed);
      to[n++] = block;
    }
    return n;
  }
  // In a child of fork, whose other threads are gone.
  void reset() noexcept {
    taking_.store(0, std::memory_order_relaxed);
    closed_.store(0, std::memory_order_relaxed);
  }

 private:
  typename A::template atomic<std::uint32_t> taking_{0}, closed_{0};  // the owner takes out; another thread does
};

// Moves blocks that are wanted out of other threads' arrays to `to`, `most` of them at most; returns how many. arrays(f)
// calls f(frees) for each, the same ones each time. fence_others() returns whether all threads were fenced: else nothing is
// taken. One thread at a time.
template <class Arrays, class FenceOthers, class IsWanted>
[[nodiscard]] std::size_t take_from_all(const Arrays& arrays, const FenceOthers& fence_others, const IsWanted& is_wanted,
                                        void** to, std::size_t most) noexcept {
  bool has_some = false;
  arrays([&](const auto& frees) { has_some = has_some || frees.has_any(is_wanted); });
  if (!has_some) return 0;
  arrays([](auto& frees) { frees.close(); });
  std::size_t n = 0;
  if (fence_others()) {
    arrays([&](auto& frees) { n += frees.take_if(is_wanted, to + n, most - n); });
    (void)fence_others();
  }
  arrays([](auto& frees) { frees.open(); });
  return n;
}

}  // namespace freehold::alloc
