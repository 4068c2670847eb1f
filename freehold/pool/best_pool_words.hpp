// SPDX-License-Identifier: MIT
// The free slots of one BestPool that lie in no array: one bit each in words that no thread owns (WordPool), and behind them
// the memory that has not been opened yet.
//
//   BestPoolWords<A> words(shape, growing);
//   Taken taken = words.take(cursor, want, thread_id);            // up to 64 slots by one exchange; none: open some
//   if (taken.bits == 0) taken = words.open(want);
//   words.put_entries(from, top, nullptr);                        // an array's entries come back, grouped by word
//
// Memory is opened in ascending order, in larger steps as the pool grows. A span never changes hands here: it belongs to the
// pool for ever, and only trim() gives its pages back.
//
//   Invariant: a bit is set  <=>  its slot is free, in no array, and its word was opened.
//
// Wrong releases are seen here, when the array's entries come back: an address outside of the pool, one inside a slot, and a
// slot that is free already.
//
// Threads: any; the caller of open() and trim() holds the pool's lock. Cost: an atomic for each word.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/named_pools.hpp"
#include "freehold/pool/slot_layout.hpp"
#include "freehold/pool/thread_places.hpp"
#include "freehold/slots/slot_groups.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/slots/word_pool.hpp"

namespace freehold::pool {

template <sync::Atomics A>
class BestPoolWords {
  using Arrays = ThreadPlaces<A>;
  using Entry = typename Arrays::Entry;

 public:
  // Errors: std::bad_alloc.
  BestPoolWords(const PoolShape& shape, bool growing)
      : layout_(shape, growing ? SlotLayout::Backing::kReserved : SlotLayout::Backing::kCommitted),
        spans_(layout_.spans(), layout_.shape().words()),
        growing_(growing) {
    spans_.pool = &words_;
    words_.attach(&spans_, 0, layout_.shape(), spans_.tree.data(), 1, layout_.spans());
  }
  BestPoolWords(const BestPoolWords&) = delete;
  BestPoolWords& operator=(const BestPoolWords&) = delete;

  [[nodiscard]] const SlotLayout& layout() const noexcept { return layout_; }

  // ---- taking

  // Up to `want` slots of one word. bits == 0: no word that was opened has one.
  [[nodiscard]] Taken take(Cursor& cursor, unsigned want, std::uint32_t thread_id) noexcept {
    return words_.take(cursor, want, thread_id, 0);
  }
  // The thread is done with the cursor's span.
  void clear_active(Cursor& cursor, std::uint32_t thread_id) noexcept { words_.clear_active(cursor, thread_id); }

  // Opens the next words; `want` slots of the first are the caller's. Pre: the lock is held. Larger steps as the pool grows,
  // so that the high-water mark is off by an eighth at most.
  [[nodiscard]] Taken open(unsigned want) noexcept {
    const std::uint32_t first = opened_.load(std::memory_order_relaxed);  // relaxed: written under the lock
    const std::uint32_t all = layout_.words();
    if (first == all) return {};
    const unsigned a_span = layout_.shape().words();
    const std::uint32_t n = std::min({std::max(first / 8, 1U), a_span - first % a_span, all - first});
    if (growing_ && !layout_.commit(first, n)) return {};
    const std::uint32_t span = first / a_span;
    Taken mine{word_index(span, first % a_span), layout_.full(first)};
    for (std::uint32_t w = first + 1; w < first + n; ++w) (void)words_.put(word_index(span, w % a_span), layout_.full(w));
    std::uint64_t rest = mine.bits;
    for (unsigned i = 0; i < want && rest != 0; ++i) rest &= rest - 1;
    mine.bits &= ~rest;
    if (rest != 0) (void)words_.put(mine.word, rest);
    opened_.store(first + n, std::memory_order_relaxed);
    layout_.opened(first, first + n);
    return mine;
  }
  [[nodiscard]] bool is_all_open() const noexcept { return opened_.load(std::memory_order_relaxed) == layout_.words(); }

  // ---- slots to addresses, and back

  // Writes the addresses of the slots to entries of an array; returns their number.
  [[nodiscard]] std::size_t list(Taken taken, Entry* out) const noexcept {
    if constexpr (Arrays::kPlain) return layout_.list(taken, Arrays::plain(out));
    void* slots[64];
    const std::size_t n = layout_.list(taken, slots);
    for (std::size_t i = 0; i < n; ++i) out[i].store(slots[i]);
    return n;
  }

  // Ends the process if one of the entries, of the caller's own array, is no address within this pool's memory: what a wrong
  // release put there. Natively only: it changes nothing that another thread sees.
  void expect_own(Entry* entries, std::size_t n) const noexcept {
    if constexpr (Arrays::kPlain) {
      void* const* const slots = Arrays::plain(entries);
      bool foreign = false;
      for (std::size_t i = 0; i < n; ++i) foreign |= !layout_.contains(slots[i]);
      if (!foreign) [[likely]]
        return;
      for (std::size_t i = 0; i < n; ++i)
        if (!layout_.contains(slots[i])) base::fatal(base::HeapError::kForeignPointer, slots[i]);
    }
  }

  // Returns whether most entries, of a sample, lie so far from the one before that each would cost an atomic in the words.
  // They stay together then. Only the array's owner may do so, in its slow path: thieves wait for that.
  [[nodiscard]] bool are_scattered(const Entry* entries, std::size_t n) const noexcept {
    const std::size_t word = 64 * layout_.slot_bytes();
    const std::size_t stride = n / kSample + 1;
    std::size_t far = 0, looked = 0;
    for (std::size_t i = 1; i < n; i += stride, ++looked) {
      const auto here = reinterpret_cast<std::uintptr_t>(entries[i].load());
      const auto before = reinterpret_cast<std::uintptr_t>(entries[i - 1].load());
      far += here - before + word / 2 > word ? 1 : 0;
    }
    return far * 2 >= looked;
  }

  // Gives n <= kMaxBatch slots back. `cursor`: goes to the last of them; may be null.
  void put(void* const* slots, std::size_t n, Cursor* cursor) noexcept {
    if constexpr (!Arrays::kPlain)  // natively expect_own() has looked; a mutant of the orders may bring anything here
      for (std::size_t i = 0; i < n; ++i)
        if (!layout_.contains(slots[i])) return base::fatal(base::HeapError::kForeignPointer, slots[i]);
    SlotGroups groups;
    layout_.group(slots, n, groups);
    if (groups.misplaced != 0) [[unlikely]]
      base::fatal(base::HeapError::kInteriorPointer, reinterpret_cast<void*>(groups.misplaced));
    if (groups.repeated != 0) [[unlikely]]
      base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(groups.repeated));
    for (std::size_t i = 0; i < groups.count; ++i) {
      const auto [word, bits] = groups.groups[i];
      if ((words_.put(word, bits) & bits) != 0) [[unlikely]]
        base::fatal(base::HeapError::kDoubleFree, layout_.address(word, base::lowest_bit(bits)));
      if (cursor != nullptr) cursor->word = word;
    }
  }
  // The same for the entries [from, top) of an array, any number.
  void put_entries(std::intptr_t from, std::intptr_t top, Cursor* cursor) noexcept {
    while (from < top) {
      const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(top - from) / sizeof(Entry), 64);
      Entry* const entries = Arrays::entry(from);
      expect_own(entries, n);
      if constexpr (Arrays::kPlain) {
        put(Arrays::plain(entries), n, cursor);
      } else {
        void* slots[64];
        for (std::size_t i = 0; i < n; ++i) slots[i] = entries[i].load();
        put(slots, n, cursor);
      }
      from += static_cast<std::intptr_t>(n * sizeof(Entry));
    }
  }

  // ---- all words

  // Slots that were opened: at least as many as were out at once. relaxed: a statistic.
  [[nodiscard]] std::size_t opened_slots() const noexcept {
    return layout_.slots_before(opened_.load(std::memory_order_relaxed));
  }
  // Readers outside the process need this to count them and the free ones.
  void add_to(LivePool& pool) const noexcept {
    pool.words = reinterpret_cast<std::uintptr_t>(spans_.bits.data());
    pool.opened_words = reinterpret_cast<std::uintptr_t>(&opened_);
    pool.words_a_span = layout_.shape().words();
    pool.slots_a_span = layout_.shape().slots;
  }
  // Calls f(slot) for each of them. Pre: no slot is opened during the call.
  template <class F>
  void for_each_opened(F&& f) const noexcept {
    const unsigned a_span = layout_.shape().words();
    for (std::uint32_t word = 0; word < opened_.load(std::memory_order_relaxed); ++word)
      for (std::uint64_t bits = layout_.full(word); bits != 0; bits &= bits - 1)
        f(layout_.address(word_index(word / a_span, word % a_span), base::lowest_bit(bits)));
  }
  // Exact at rest.
  [[nodiscard]] std::size_t free_slots() noexcept {
    std::size_t n = 0;
    for (std::uint32_t span = 0; span < layout_.spans(); ++span) n += words_.free_slots(span);
    return n;
  }
  // Gives the memory of spans that are wholly free back to the system; returns bytes. Pre: the lock is held.
  std::size_t trim() noexcept {
    std::size_t bytes = 0;
    const std::uint32_t whole = opened_.load(std::memory_order_relaxed) / layout_.shape().words();
    for (std::uint32_t span = 0; span < whole; ++span) {
      if (!layout_.is_whole(span) || !words_.take_all(span)) continue;
      bytes += layout_.purge(span);
      for (unsigned w = 0; w < layout_.shape().words(); ++w) (void)words_.put(word_index(span, w), layout_.shape().full(w));
    }
    return bytes;
  }
  [[nodiscard]] bool check_invariants() noexcept {
    for (std::uint32_t span = 0; span < layout_.spans(); ++span)
      if (!words_.check_span(span)) return false;
    return true;
  }

 private:
  static constexpr unsigned kSample = 8;  // entries that decide whether a batch is scattered

  struct Spans;
  struct WordsConfig {
    using Storage = BestPoolWords::Spans;
    using Orders = WordPoolOrders;
  };
  using Words = WordPool<A, WordsConfig>;
  using Word = typename Words::Word;

  // The bitmap.
  struct Spans {
    Spans(std::size_t spans, unsigned words_each)
        : words_a_span(words_each),
          bits(spans * words_each),
          summaries(spans),
          last_users(spans),
          tree(SummaryTree<A>::words_for(spans)) {}

    Word& word(WordIndex index) const noexcept {
      return bits[std::size_t{span_of(index)} * words_a_span + word_in_span(index)];
    }
    Word& summary(std::uint32_t span) const noexcept { return summaries[span]; }
    auto& last_user(std::uint32_t span) const noexcept { return last_users[span]; }
    static constexpr bool belongs(std::uint32_t, unsigned) noexcept { return true; }
    static constexpr bool is_left_to(LastUser, unsigned) noexcept { return false; }
    SummaryTree<A>* tree_of(std::uint32_t) const noexcept { return &pool->tree(); }

    std::size_t words_a_span;
    ZeroedArray<Word> bits, summaries;
    ZeroedArray<typename A::template atomic<std::uint32_t>> last_users;
    ZeroedArray<Word> tree;
    Words* pool = nullptr;
  };

  // Written by the constructor only.
  SlotLayout layout_;
  Spans spans_;
  bool growing_;
  Words words_;
  // Under the pool's lock; read by anyone.
  typename A::template atomic<std::uint32_t> opened_{0};  // words
};

}  // namespace freehold::pool
