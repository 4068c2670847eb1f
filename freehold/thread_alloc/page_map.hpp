// SPDX-License-Identifier: MIT
// A set of 4 KiB pages of the address space: one bit a page, in a two-level table.
// OwnerPagesHeap asks it whether a pointer lies in a page of slots or is a large block of the upstream, before it reads
// anything near the pointer. The answer does not depend on alignment or on bytes that a program might have written: a page
// belongs wholly to one side, and its bit is right for as long as anyone rightly holds a pointer into it.
// Invariant: the bit of a page is set from insert() until erase(). Leaves are never freed.
// Any thread. contains: two loads. insert, erase: one read-modify-write; the first page of a leaf maps the leaf (256 KiB of
// address space for 8 GiB; only the touched part takes memory).
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::thread_alloc {

struct PageMapOrders {
  // release: pairs with kFind; publishes the leaf, which the mapping thread alone knows to be zero.
  static constexpr std::memory_order kPublish = std::memory_order_release;
  // acquire: pairs with kPublish. The words themselves need no order: the bit of the page that is asked about was set before
  // its pointer was handed out, and the pointer came to the asking thread by some synchronisation.
  static constexpr std::memory_order kFind = std::memory_order_acquire;
};

// Source: map(bytes) and release(address, bytes) of os::PageSource. What map() returns is used as zeroed words without
// constructing them: that would touch every page of a sparse table.
template <sync::Atomics A, class Source = os::Pages, unsigned kAddressBits = 48, class Orders = PageMapOrders>
class PageMap {
 public:
  static constexpr std::size_t kPageBytes = 4096;

  constexpr PageMap() noexcept = default;

  // Returns whether the page of `address` is in the map.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / kPageBytes;
    if (page >> kPageBits != 0) [[unlikely]]
      return false;
    const Leaf* const leaf = root_[page >> kLeafBits].load(Orders::kFind);
    if (leaf == nullptr) [[unlikely]]
      return false;
    // relaxed: see kFind.
    return (word(*leaf, page).load(std::memory_order_relaxed) & base::bit(page % 64)) != 0;
  }

  // Puts a page in. False if there is no memory for its leaf, or the address is beyond the map. Pre: it is not in.
  [[nodiscard]] bool insert(const void* address) noexcept {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / kPageBytes;
    if (page >> kPageBits != 0) return false;
    Leaf* leaf = root_[page >> kLeafBits].load(Orders::kFind);
    if (leaf == nullptr) leaf = publish_leaf(root_[page >> kLeafBits]);
    if (leaf == nullptr) return false;
    // relaxed: see kFind.
    word(*leaf, page).fetch_or(base::bit(page % 64), std::memory_order_relaxed);
    return true;
  }

  // Takes a page out. Pre: it is in, and no thread holds a pointer into it.
  void erase(const void* address) noexcept {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / kPageBytes;
    Leaf* const leaf = root_[page >> kLeafBits].load(Orders::kFind);
    // relaxed: the page's next user gets it from the upstream, to which we give it after this.
    word(*leaf, page).fetch_and(~base::bit(page % 64), std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kPageBits = kAddressBits - 12;  // bits of a page's number
  static constexpr unsigned kLeafBits = kPageBits < 21 ? kPageBits / 2 : 21;
  using Word = typename A::template atomic<std::uint64_t>;
  struct Leaf {
    std::array<Word, (std::size_t{1} << kLeafBits) / 64> words;
  };

  template <class L>
  static auto& word(L& leaf, std::uintptr_t page) noexcept {
    return leaf.words[(page / 64) % leaf.words.size()];
  }

  // The leaf at `place`: ours, or that of a thread that was faster; null if there is no memory.
  [[gnu::noinline]] Leaf* publish_leaf(typename A::template atomic<Leaf*>& place) noexcept {
    Source source;
    void* const memory = source.map(sizeof(Leaf));
    if (memory == nullptr) return nullptr;
    Leaf* const leaf = std::launder(static_cast<Leaf*>(memory));
    Leaf* expected = nullptr;
    if (place.compare_exchange_strong(expected, leaf, Orders::kPublish, Orders::kFind)) return leaf;
    source.release(memory, sizeof(Leaf));
    return expected;
  }

  std::array<typename A::template atomic<Leaf*>, std::size_t{1} << (kPageBits - kLeafBits)> root_{};
};

}  // namespace freehold::thread_alloc
