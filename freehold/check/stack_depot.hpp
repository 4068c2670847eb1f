// SPDX-License-Identifier: MIT
// Call stacks, each different one stored once, by a number of 32 bits: blocks that are allocated at the same place share
// theirs. A hash table with open addressing leads to entries, which are never changed nor removed.
//
//   entry:   words_[id] is its head: hash above, depth in the lowest byte; then the addresses. 0: not written yet.
//   place:   table_[i] is 0 or the id of an entry that is complete.
//   Invariant: of two complete entries that the table leads to, no two are equal. Entries in the table lie below used_.
//
// Bounded: where the table or the words are full, the answer is 0, "unknown". Lock-free: a thread that loses a race for a
// place looks at what the other wrote, and its own entry is lost. Any thread, also in a signal's handler. Cost of a known
// stack: one hash, a shared line or two, no write.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::check {

struct StackDepotOrders {
  // Release: publishes the entry's words. Pairs with kLook, of those that find the entry in the table.
  static constexpr auto kPut = std::memory_order_release;
  static constexpr auto kLook = std::memory_order_acquire;
  // The same for those that were told the number without any order (a handler, a report about another thread's block).
  static constexpr auto kWrite = std::memory_order_release;
  static constexpr auto kRead = std::memory_order_acquire;
};

template <sync::Atomics A, class Orders = StackDepotOrders>
class StackDepot {
 public:
  using Id = std::uint32_t;
  using Word = typename A::template atomic<std::uintptr_t>;
  using Place = typename A::template atomic<std::uint32_t>;

  static constexpr Id kUnknown = 0;
  static constexpr unsigned kMostDepth = 64;
  static constexpr unsigned kMostProbes = 32;

  constexpr StackDepot() noexcept = default;

  // Memory that is all zero and stays: `places` is a power of two, `words` at most 2^32. Before the first other call.
  void init(Place* table, std::size_t places, Word* words, std::size_t word_count) noexcept {
    FREEHOLD_ASSERT(std::has_single_bit(places) && word_count <= UINT32_MAX);
    table_ = table;
    places_ = places;
    words_ = words;
    word_count_ = static_cast<std::uint32_t>(word_count);
  }
  // The same, with memory from these pages. False: the system refused.
  template <os::PageSource Pages>
  [[nodiscard]] bool init(Pages& pages, std::size_t places, std::size_t word_count) noexcept {
    const std::size_t bytes = base::align_up(places * sizeof(Place) + word_count * sizeof(Word), os::kLargestPageBytes);
    void* const memory = pages.map(bytes);
    if (memory == nullptr) return false;
    pages.name(memory, bytes, "freehold call stacks");
    auto* const words = static_cast<Word*>(memory);
    init(reinterpret_cast<Place*>(words + word_count), places, words, word_count);
    return true;
  }

  // The number of a stack; kUnknown if it is empty or there is no room. Addresses beyond kMostDepth are left out.
  [[nodiscard]] Id insert(void* const* addresses, unsigned depth) noexcept {
    depth = std::min(depth, kMostDepth);
    if (depth == 0 || places_ == 0) return kUnknown;
    const std::uintptr_t head = hash(addresses, depth) << kDepthBits | depth;
    Id mine = kUnknown;
    for (std::size_t probe = 0; probe < std::min<std::size_t>(places_, kMostProbes); ++probe) {
      Place& place = table_[(spread(head) + probe) & (places_ - 1)];
      Id there = place.load(Orders::kLook);
      if (there == kUnknown) {
        if (mine == kUnknown) mine = write(head, addresses, depth);
        if (mine == kUnknown) return kUnknown;
        if (place.compare_exchange_strong(there, mine, Orders::kPut, Orders::kLook)) return mine;
      }
      if (is_equal(there, head, addresses, depth)) return there;
    }
    return kUnknown;
  }

  // Copies the addresses of a stack, at most `most`. Returns how many; 0 of kUnknown.
  [[nodiscard]] unsigned read(Id id, void** addresses, unsigned most) const noexcept {
    if (id == kUnknown || id >= word_count_) return 0;
    const auto depth = static_cast<unsigned>(words_[id].load(Orders::kRead) & kDepthMask);
    const unsigned count = std::min({depth, most, word_count_ - id - 1});  // whatever a damaged number leads to
    // Relaxed: the head published them, and they do not change.
    for (unsigned i = 0; i < count; ++i)
      addresses[i] = reinterpret_cast<void*>(words_[id + 1 + i].load(std::memory_order_relaxed));
    return count;
  }

  // Words that are taken, of entries that are lost as well. For statistics and tests.
  [[nodiscard]] std::size_t used_words() const noexcept { return used_.load(std::memory_order_relaxed); }
  // For readers outside the process.
  [[nodiscard]] const Word* words() const noexcept { return words_; }
  [[nodiscard]] const Place& used() const noexcept { return used_; }

 private:
  static constexpr unsigned kDepthBits = 8;
  static constexpr std::uintptr_t kDepthMask = (1U << kDepthBits) - 1;
  static constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;  // Knuth's multiplicative hash

  [[nodiscard]] static std::uintptr_t hash(void* const* addresses, unsigned depth) noexcept {
    std::uint64_t h = depth;
    for (unsigned i = 0; i < depth; ++i) {
      h = (h ^ reinterpret_cast<std::uintptr_t>(addresses[i])) * kGolden;
      h ^= h >> 32;
    }
    return h;
  }
  [[nodiscard]] static std::size_t spread(std::uintptr_t head) noexcept { return head * kGolden >> 32; }

  // An entry that no other thread knows; kUnknown: there is no room.
  [[nodiscard]] Id write(std::uintptr_t head, void* const* addresses, unsigned depth) noexcept {
    Id id = used_.load(std::memory_order_relaxed);  // relaxed, as the exchange: it deals out numbers, it publishes nothing
    do
      if (word_count_ - id < depth + 1) return kUnknown;
    while (!used_.compare_exchange_weak(id, id + depth + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    for (unsigned i = 0; i < depth; ++i)  // relaxed: the head publishes them
      words_[id + 1 + i].store(reinterpret_cast<std::uintptr_t>(addresses[i]), std::memory_order_relaxed);
    words_[id].store(head, Orders::kWrite);
    return id;
  }

  [[nodiscard]] bool is_equal(Id id, std::uintptr_t head, void* const* addresses, unsigned depth) const noexcept {
    if (words_[id].load(std::memory_order_relaxed) != head) return false;  // relaxed: kLook or kPut's failure ordered it
    for (unsigned i = 0; i < depth; ++i)
      if (words_[id + 1 + i].load(std::memory_order_relaxed) != reinterpret_cast<std::uintptr_t>(addresses[i])) return false;
    return true;
  }

  Place* table_ = nullptr;
  std::size_t places_ = 0;
  Word* words_ = nullptr;
  std::uint32_t word_count_ = 0;
  Place used_{1};  // word 0 is no entry
};

}  // namespace freehold::check
