// What threads do whose malloc or free comes while another thread forks (sync/fork_gate.hpp), when the engine may not be
// changed: a block is mapped by itself, a free is put off.
//
//   Blocks: a mapping each, its record in front. The list grows at its head by whoever forks or not; a block leaves it under
//   the lock, by threads inside the gate only, so that a child never finds it half unlinked.
//   Frees: a stack, its links in the blocks' first words, taken whole by whoever comes when the fork is over.
//
// Both are found whole in a copy of the process that is made at any moment: each grows by one compare-exchange.
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

struct PutOffOrders {
  // Both halves of both: of a push and a take that follow each other, the later sees what came before the earlier. So
  // whoever pushes after the take sees that the fork is over, and takes.
  static constexpr auto kPush = std::memory_order_acq_rel;
  static constexpr auto kTake = std::memory_order_acq_rel;
};

// Things linked by their member kNext, put aside by many and taken all at once.
template <sync::Atomics A, class T, T* T::* kNext, class Orders = PutOffOrders>
class PutOff {
 public:
  constexpr PutOff() noexcept = default;

  void push(T* thing) noexcept {
    T* head = head_.load(std::memory_order_relaxed);  // relaxed: the exchange looks again
    do thing->*kNext = head;
    while (!head_.compare_exchange_weak(head, thing, Orders::kPush, std::memory_order_relaxed));
  }
  [[nodiscard]] T* take_all() noexcept { return head_.exchange(nullptr, Orders::kTake); }
  // In a child of fork, where what was put off is dealt with otherwise.
  void forget() noexcept { head_.store(nullptr, std::memory_order_relaxed); }  // relaxed: no other thread

 private:
  typename A::template atomic<T*> head_{nullptr};
};

template <sync::Atomics A, os::PageSource Pages>
class ForkBlocks {
 public:
  constexpr ForkBlocks() noexcept = default;

  // Zeroed, like every fresh mapping. Null: the system refused. Any thread, inside the gate or not.
  [[nodiscard]] void* allocate(Pages& pages, std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t lead = std::max(alignment, sizeof(Block));
    std::size_t want = 0;
    if (bytes > PTRDIFF_MAX || __builtin_add_overflow(bytes, 2 * lead, &want) || want > PTRDIFF_MAX) return nullptr;
    want = base::align_up(want, os::kLargestPageBytes);
    void* const mapping = pages.map(want);
    if (mapping == nullptr) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(mapping);
    const std::uintptr_t address = base::align_up(start + sizeof(Block), lead);
    auto* const block = reinterpret_cast<Block*>(address) - 1;
    block->mapping = mapping;
    block->mapping_bytes = want;
    block->bytes = start + want - address;
    Block* head = head_.load(std::memory_order_relaxed);  // relaxed: the exchange looks again
    do block->next = head;
    while (!head_.compare_exchange_weak(head, block, std::memory_order_release, std::memory_order_relaxed));
    return reinterpret_cast<void*>(address);
  }

  // The bytes of a block; 0: it is none of these. Any thread.
  [[nodiscard]] std::size_t bytes_of(const void* address) noexcept {
    if (empty()) return 0;
    const sync::Guard guard(lock_);
    const Block* const block = find(address);
    return block != nullptr ? block->bytes : 0;
  }

  // False: it is none of these. Only inside the gate.
  [[nodiscard]] bool free(Pages& pages, void* address) noexcept {
    if (empty()) return false;
    const sync::Guard guard(lock_);
    Block* const block = find(address);
    if (block == nullptr) return false;
    unlink(block);
    (void)pages.unmap(block->mapping, block->mapping_bytes);
    return true;
  }

  // In a child of fork: a thread that only looked may have held the lock.
  void reset() noexcept { lock_.reset(); }

 private:
  struct alignas(16) Block {
    Block* next;
    void* mapping;
    std::size_t mapping_bytes;
    std::size_t bytes;
  };

  // Acquire: pairs with the release in allocate().
  [[nodiscard]] bool empty() const noexcept { return head_.load(std::memory_order_acquire) == nullptr; }

  [[nodiscard]] Block* find(const void* address) noexcept {
    Block* block = head_.load(std::memory_order_acquire);  // as in empty()
    while (block != nullptr && block + 1 != address) block = block->next;
    return block;
  }

  // Others may push meanwhile: they change the head alone.
  void unlink(Block* block) noexcept {
    Block* before = block;
    if (head_.compare_exchange_strong(before, block->next, std::memory_order_acq_rel, std::memory_order_acquire)) return;
    while (before->next != block) before = before->next;
    before->next = block->next;
  }

  typename A::template atomic<Block*> head_{nullptr};
  sync::Mutex<A> lock_;
};

}  // namespace freehold::alloc
