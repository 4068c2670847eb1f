// SPDX-License-Identifier: MIT
// malloc and free while another thread forks (sync/fork_gate.hpp), when the engine must not change: ForkBlocks maps a block
// by itself, DeferredList keeps a free for later.
//
//   ForkBlocks: a mapping each, its record in front, in lists by address. A list grows at its head; a block leaves it under the
//   lock, by one store. They come and go while threads fork.
//   DeferredList, of blocks that are older than the fork: a stack, its links in the blocks' first words. The first thread that
//   comes after the fork takes it whole.
//
// Both are whole in a copy of the process that is made at any moment: each changes by one store.
// Any thread. Allocating: a system call.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

struct DeferredOrders {
  // Both halves of both: of a push and a take that follow each other, the later sees what came before the earlier. So
  // a thread that pushes after the take sees that the fork is over, and takes.
  static constexpr auto kPush = std::memory_order_acq_rel;
  static constexpr auto kTake = std::memory_order_acq_rel;
};

// Things linked by their member kNext, put aside by many and taken all at once.
template <sync::Atomics A, class T, T* T::* kNext, class Orders = DeferredOrders>
class DeferredList {
 public:
  constexpr DeferredList() noexcept = default;

  void push(T* thing) noexcept {
    T* head = head_.load(std::memory_order_relaxed);  // relaxed: the exchange looks again
    do thing->*kNext = head;
    while (!head_.compare_exchange_weak(head, thing, Orders::kPush, std::memory_order_relaxed));
  }
  [[nodiscard]] T* take_all() noexcept { return head_.exchange(nullptr, Orders::kTake); }
  // In a child of fork, whose parent does the deferred work.
  void forget() noexcept { head_.store(nullptr, std::memory_order_relaxed); }  // relaxed: no other thread

 private:
  typename A::template atomic<T*> head_{nullptr};
};

template <sync::Atomics A, os::PageSource Pages>
class ForkBlocks {
 public:
  constexpr ForkBlocks() noexcept = default;

  // Null: the system refused. Any thread, inside the gate or not.
  [[nodiscard]] void* allocate(Pages& pages, std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t lead = std::max(alignment, sizeof(Block));
    std::size_t want = 0;
    if (bytes > PTRDIFF_MAX || lead > PTRDIFF_MAX / 2 || __builtin_add_overflow(bytes, 2 * lead, &want) ||
        want > PTRDIFF_MAX)
      return nullptr;
    want = base::align_up(want, os::kLargestPageBytes);
    void* const mapping = pages.map(want);
    if (mapping == nullptr) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(mapping);
    const std::uintptr_t address = base::align_up(start + sizeof(Block), lead);
    auto* const block = reinterpret_cast<Block*>(address) - 1;
    block->mapping = mapping;
    block->mapping_bytes = want;
    block->bytes = start + want - address;
    auto& list = list_of(block + 1);
    Block* head = list.load(std::memory_order_relaxed);  // relaxed: the exchange looks again
    do block->next = head;
    while (!list.compare_exchange_weak(head, block, std::memory_order_release, std::memory_order_relaxed));
    return block + 1;
  }

  // The bytes of a block; 0 if it is not one of these. Any thread.
  [[nodiscard]] std::size_t bytes_of(const void* address) noexcept {
    if (is_empty(list_of(address))) return 0;
    const sync::Guard guard(lock_);
    const Block* const block = find(address);
    return block != nullptr ? block->bytes : 0;
  }

  // False if it is not one of these. Any thread, inside the gate or not.
  [[nodiscard]] bool free(Pages& pages, void* address) noexcept {
    if (is_empty(list_of(address))) return false;
    const sync::Guard guard(lock_);
    Block* const block = find(address);
    if (block == nullptr) return false;
    unlink(block);
    (void)pages.unmap(block->mapping, block->mapping_bytes);
    return true;
  }

  // In a child of fork: the thread that held the lock is gone.
  void reset() noexcept { lock_.reset(); }

 private:
  struct alignas(16) Block {
    Block* next;
    void* mapping;
    std::size_t mapping_bytes;
    std::size_t bytes;
  };

  using List = typename A::template atomic<Block*>;
  static constexpr unsigned kListShift = 8;

  [[nodiscard]] List& list_of(const void* address) noexcept {
    constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;  // Knuth's multiplicative hash
    return lists_[(reinterpret_cast<std::uintptr_t>(address) >> 12) * kGolden >> (64 - kListShift)];
  }
  // Acquire: pairs with the release in allocate().
  [[nodiscard]] static bool is_empty(const List& list) noexcept { return list.load(std::memory_order_acquire) == nullptr; }

  [[nodiscard]] Block* find(const void* address) noexcept {
    Block* block = list_of(address).load(std::memory_order_acquire);  // as in is_empty()
    while (block != nullptr && block + 1 != address) block = block->next;
    return block;
  }

  // Others may push at the same time: they change the head alone.
  void unlink(Block* block) noexcept {
    Block* before = block;
    if (list_of(block + 1).compare_exchange_strong(before, block->next, std::memory_order_acq_rel,
                                                   std::memory_order_acquire))
      return;
    while (before->next != block) before = before->next;
    before->next = block->next;
  }

  List lists_[1U << kListShift]{};
  sync::Mutex<A> lock_;
};

}  // namespace freehold::alloc
