// SPDX-License-Identifier: MIT
// A small stack of free slots in thread-local storage over one pool that all threads share: the solution that the author of
// "Memory management, pools compared" would like to try some day. Beside magazines.hpp it shows what two stacks and a depot
// of whole stacks are worth: a thread whose stack is empty or full moves half of it, slot by slot.
//
//   Invariant: a free slot lies in one thread's stack, or is free in the tree below, or a thread is on its way between the two.
//
// A thread that ends pours its slots into the tree. A thread without a stack (thread_caches.hpp) takes single slots from
// there.
//
// Linearisation: in the thread alone, or as lock_free_bitmap_tree.hpp. Any thread; lock-free after a thread's first
// operation. Slots in other threads' stacks are not found: at most a sixteenth of the pool each (or one slot). Cost: a
// thread-local look-up and a push or pop on the thread's own lines; an atomic for each run of slots of one word.
// Bookkeeping: 1 bit a slot, 512 bytes a thread.
#pragma once
#include <algorithm>
#include <cstddef>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/strategies/home.hpp"
#include "freehold/strategies/lock_free_bitmap_tree.hpp"
#include "freehold/strategies/magazines.hpp"
#include "freehold/strategies/thread_caches.hpp"

namespace freehold::pool {

// It adds no orders: those of the tree and of the lock are in lock-free-bitmap-tree and magazines.
template <sync::Atomics A, class Contention>
class ThreadStacksPool {
 public:
  [[gnu::visibility("hidden")]] explicit ThreadStacksPool(const PoolShape& shape)
      : slots_(shape),
        entries_(static_cast<unsigned>(std::clamp<std::size_t>(shape.slots / 16, 1, Magazine<A>::kMaxRounds))),
        below_(shape.slots) {}

  // Inlined, so that each shared object asks is_here() with its own code (home.hpp).
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Stack* const stack = caches_.mine();
    if (stack == nullptr && !home_.is_here()) [[unlikely]]
      return home_.acquire(*this);
    contention_.operated();
    if (stack == nullptr || stack->count() == 0) [[unlikely]]
      return refill(stack == nullptr ? caches_.make() : stack);
    return slots_.hand_out_at(stack->pop());
  }

  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Stack* stack = caches_.mine();
    if (stack == nullptr && !home_.is_here()) [[unlikely]]
      return home_.release(*this, slot);
    if (!slots_.take_back_at(slot)) return;
    contention_.operated();
    if (stack == nullptr) [[unlikely]]
      stack = caches_.make();
    if (stack == nullptr || stack->count() == entries_) [[unlikely]]
      return give_back(slots_.number(slot), stack, batch());
    stack->push(slot);
  }

  // Gives back what the calling thread's stack holds.
  void flush() noexcept {
    if (Stack* const stack = caches_.mine(); stack != nullptr) drain(*stack);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  using Stack = Magazine<A>;
  using Tree = FreeSlotTree<A>;
  using Caches = ThreadCaches<A, ThreadStacksPool, Stack, PoolLockOrders{}>;
  friend Caches;

  [[nodiscard]] unsigned batch() const noexcept { return (entries_ + 1) / 2; }

  // Takes a batch from below, one for the caller and the others for its stack, which is empty. `stack` null: it has none.
  [[gnu::noinline]] void* refill(Stack* stack) noexcept {
    auto taken = below_.take_some(stack == nullptr ? 1 : batch(), contention_);
    if (taken.bits == 0) return nullptr;
    const auto address = [&] { return slots_.address(taken.word * 64 + base::lowest_bit(taken.bits)); };
    void* const mine = address();
    while ((taken.bits &= taken.bits - 1) != 0) stack->push(address());
    return slots_.hand_out_at(mine);
  }
  // Gives back the slot `number` and up to `more` of the stack.
  [[gnu::noinline]] void give_back(std::size_t number, Stack* stack, unsigned more) noexcept {
    below_.put_run(number, [&] {
      return stack == nullptr || more-- == 0 || stack->count() == 0 ? Slots::kNone : slots_.number(stack->pop());
    });
  }
  void drain(Stack& stack) noexcept {
    if (stack.count() != 0) give_back(slots_.number(stack.pop()), &stack, entries_);
  }

  // The constructor alone writes these.
  Home<A, ThreadStacksPool> home_;
  Slots slots_;
  unsigned entries_;  // entries of a stack
  // Any thread.
  Tree below_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
  alignas(base::kCacheLine) Caches caches_{*this};
};

/// A small stack in each thread's local storage. It does not find the slots of other threads.
struct ThreadStacks {
  static constexpr std::string_view kName = "thread-stacks";
  static constexpr bool kFindsLast = false;
  static constexpr double kBookkeepingBytes = 64.0 / 63 / 8;
  static constexpr NoOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, NoOrders O = kOrders>
  using Pool = ThreadStacksPool<A, Contention>;
};

}  // namespace freehold::pool
