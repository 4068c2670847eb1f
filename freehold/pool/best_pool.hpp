// SPDX-License-Identifier: MIT
// BestPool: the pool to use unless you compare pools. Each thread has a small array of free slots; below lies one bit per
// slot in words that no thread owns (WordPool, the core of the malloc engine, too).
//
//   pool::PoolShape shape{.slots = 10'000, .slot_bytes = sizeof(Order)};
//   pool::NativePool<pool::Best> pool(shape);       // ObjectPool<Order> is the typed form
//   void* slot = pool.acquire();                    // null: every slot is in use
//   pool.release(slot);                             // from any thread
//
// acquire pops the array, release pushes it: no atomic read-modify-write, no shared line, and the slot itself is not
// touched. An empty array takes a whole word at once (64 slots by one exchange), a full one gives its older half back,
// grouped by word. Memory is opened as it is needed, in ascending order. The last free slot is found even in another
// thread's array: a thread that finds none elsewhere stops all arrays and steals (best_pool_arrays.hpp).
//
//   Invariant: a slot is in exactly one place: in a word (its bit is set), in one array, in a batch of the transfer cache
//              (transfer_cache.hpp), not yet opened, or in use.
//
// Any thread; acquire never throws and returns null only if no slot is free (growing: or memory is out). Lock-free but where
// memory is opened and where slots are stolen. A thread's array goes back when the thread ends.
// Cost: 8 or 9 instructions each; one atomic on a word per 64 slots each way; a steal takes some microseconds.
// Bookkeeping: 1 bit a slot and 1/64 of it for summaries; up to half a byte more while scattered slots are on their way.
// A thread that uses the pool: 1 KiB, and 4 KiB of thread-local storage for its first 127 pools. (With more alive at once,
// the others' arrays are looked up, which costs a pair some 8 ns.) Held in a thread's array: at most kMaxEntries slots, 64
// KiB, or an eighth of a pool of fixed capacity, whichever is least.
//
// Misuse in a build that is not checked: a slot that is released twice, and an address outside of the pool, are seen when
// their batch goes back to the words, 64 at a time; until then an array may hand them out again.
//
// Fork: a child of a multithreaded program finds what lay in its other threads' arrays by stealing; it must not be made
// while another thread is in a slow path.
// Source: what "Memory management, pools compared" wished for in its end; docs/design.md has the way there.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/check.hpp"
#include "freehold/pool/best_pool_arrays.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/home.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slot_groups.hpp"
#include "freehold/pool/slot_layout.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/thread_arrays.hpp"
#include "freehold/pool/transfer_cache.hpp"
#include "freehold/pool/word_pool.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

/// When a pool's memory comes.
enum class Growth : std::uint8_t {
  kFixed,    ///< all memory is there from the beginning: acquire fails only when every slot is in use
  kGrowing,  ///< address space for the capacity, memory as it is needed: acquire fails when that cannot be had, too
};

/// The pool to use unless you compare pools; programs name it `NativePool<Best>`, or use it through ObjectPool.
template <sync::Atomics A, class Contention, BestPoolOrders O>
class BestPool {
  using List = BestPoolArrays<A, O, BestPool>;
  friend List;
  using Arrays = typename List::Arrays;
  using Array = typename Arrays::Array;
  using Entry = typename Arrays::Entry;
  using Cache = typename List::Cache;
  using SlowPath = typename List::SlowPath;
  using Dry = typename List::Dry;
  static constexpr std::intptr_t kEntryBytes = List::kEntryBytes;
  static constexpr unsigned kMaxEntries = List::kMaxEntries;
  using Transfer = TransferCache<A, O.transfer>;
  static constexpr unsigned kTries = 8;   // words that a refill looks at for half a batch
  static constexpr unsigned kSample = 8;  // entries that decide whether a batch is scattered

 public:
  /// A pool of fixed capacity.
  /// @param shape  number, size and alignment of the slots
  /// Errors: std::bad_alloc.
  [[gnu::visibility("hidden")]] explicit BestPool(const PoolShape& shape) : BestPool(shape, Growth::kFixed) {}
  /// A pool whose memory comes as `growth` says.
  /// @param shape   number, size and alignment of the slots
  /// @param growth  kFixed or kGrowing
  /// Errors: std::bad_alloc.
  [[gnu::visibility("hidden")]] BestPool(const PoolShape& shape, Growth growth)
      : layout_(shape, growth == Growth::kFixed ? SlotLayout::Backing::kCommitted : SlotLayout::Backing::kReserved),
        spans_(layout_.spans(), layout_.shape().words()),
        allocated_(layout_.numbers()),
        transfer_(layout_.slots()),
        entries_(entries_for(shape, growth)),
        batch_(entries_ >= kWholeWords ? 64 : (entries_ + 1) / 2),
        growing_(growth == Growth::kGrowing),
        steals_(A::may_fence_heavily()) {
    spans_.pool = &words_;
    words_.attach(&spans_, 0, layout_.shape(), spans_.tree.data(), 1, layout_.spans());
    // Without stealing, a pool of fixed capacity has no arrays to hide its last slots in; a growing one stops short of them.
    uses_arrays_ = !layout_.watched_by_memcheck() && (growing_ || steals_);
    if (uses_arrays_) place_ = places_.claim();
  }
  BestPool(const BestPool&) = delete;
  BestPool& operator=(const BestPool&) = delete;
  /// Pre: no thread uses the pool any more. Slots in use end with it.
  [[gnu::visibility("hidden")]] ~BestPool() {
    // Asked again: a simulated machine has others when an execution was cut short.
    auto& places = home_.is_here() ? Arrays::places() : places_;
    const sync::Guard global(places.lock);
    arrays_.delete_all();
    places.give_up(place_);
  }

  /// A free slot, its contents arbitrary; null if none is free (growing: or memory is out).
  /// Threads: any. Cost: 8 or 9 instructions; one atomic per 64 slots.
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return acquire_unjoined();
    return acquire_from(array);
  }

  /// Takes a slot back.
  /// @param slot  what acquire() of this pool returned, in any thread
  /// Threads: any. Cost: as acquire().
  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return release_unjoined(slot);
    release_to(array, slot);
  }

  /// The most slots that there can be in use.
  [[nodiscard]] std::size_t capacity() const noexcept { return layout_.slots(); }
  /// The size of a slot, rounded up to its alignment.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return layout_.slot_bytes(); }
  /// The most slots that were out at once, counted when memory was opened: at least as many as were in use, and at most an
  /// eighth more, a thread's array for each thread, and 64.
  [[nodiscard]] std::size_t high_water() const noexcept {
    return layout_.slots_before(opened_.load(std::memory_order_relaxed));  // relaxed: a statistic
  }
  /// Slots that are free without opening memory, in words and arrays; exact at rest.
  [[nodiscard]] std::size_t free_slots() noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    std::size_t n = transfer_.kept();
    for (std::uint32_t span = 0; span < layout_.spans(); ++span) n += words_.free_slots(span);
    for (const Cache* cache = arrays_.first(); cache != nullptr; cache = cache->next)
      if (cache->array != nullptr) n += Arrays::entries(*cache->array);
    return n;
  }
  /// What the Contention policy counted.
  [[nodiscard]] sync::Contention contention() const noexcept {
    sync::Contention all = contention_.total();
    all.waits += lock_.waits().count();
    return all;
  }

  /// Gives the memory of spans that are wholly free back to the system; they stay usable.
  /// Returns: bytes. Threads: any. Cost: a pass over the spans that were opened, under the lock: a thread that finds no slot
  /// meanwhile waits and looks again, since what is passing through here is free.
  std::size_t trim() noexcept {
    const sync::Guard guard(lock_);
    std::size_t bytes = 0;
    Entry batch[Transfer::kBatch];
    while (const std::size_t n = transfer_.take(batch, contention_))
      put_entries(Arrays::address(batch), Arrays::address(batch + n));
    const std::uint32_t whole = opened_.load(std::memory_order_relaxed) / layout_.shape().words();
    for (std::uint32_t span = 0; span < whole; ++span) {
      if (!layout_.is_whole(span) || !words_.take_all(span)) continue;
      bytes += layout_.purge(span);
      for (unsigned w = 0; w < layout_.shape().words(); ++w) (void)words_.put(word_index(span, w), layout_.shape().full(w));
    }
    return bytes;
  }

  /// Whether the invariants hold; at rest. For tests.
  [[nodiscard]] bool check_invariants() noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    for (std::uint32_t span = 0; span < layout_.spans(); ++span)
      if (!words_.check_span(span)) return false;
    return arrays_.check_invariants();
  }

 private:
  struct Spans;
  struct WordsConfig {
    using Storage = BestPool::Spans;
    using Orders = WordPoolOrders;
  };
  using Words = WordPool<A, WordsConfig>;
  using Word = typename Words::Word;

  // The bitmap. A span never changes hands here.
  struct Spans {
    Spans(std::size_t spans, unsigned words_a_span)
        : words_a_span(words_a_span),
          bits(spans * words_a_span),
          summaries(spans),
          last_users(spans),
          tree(SummaryTree<A>::words_for(spans)) {}

    Word& word(WordIndex index) const noexcept {
      return bits[std::size_t{span_of(index)} * words_a_span + word_in_span(index)];
    }
    Word& summary(std::uint32_t span) const noexcept { return summaries[span]; }
    auto& last_user(std::uint32_t span) const noexcept { return last_users[span]; }
    static constexpr bool belongs(std::uint32_t, unsigned) noexcept { return true; }
    SummaryTree<A>* tree_of(std::uint32_t) const noexcept { return &pool->tree(); }

    std::size_t words_a_span;
    ZeroedArray<Word> bits, summaries;
    ZeroedArray<typename A::template atomic<std::uint32_t>> last_users;
    ZeroedArray<Word> tree;
    Words* pool = nullptr;
  };

  // Arrays of so many entries trade whole words, which costs least; a refill that begins with half a batch must fit, too.
  static constexpr unsigned kWholeWords = 96;
  static_assert(kMaxEntries >= kWholeWords && Transfer::kBatch >= 64);

  static unsigned entries_for(const PoolShape& shape, Growth growth) noexcept {
    constexpr std::size_t kMaxBytes = 64 * 1024;
    std::size_t n = std::min<std::size_t>(kMaxEntries, std::max<std::size_t>(kMaxBytes / shape.slot_bytes, 1));
    if (growth == Growth::kFixed) n = std::min(n, std::max<std::size_t>(shape.slots / 8, 1));
    return static_cast<unsigned>(n);
  }

  // ---- what checkers are told

  // Else only memcheck may watch, and arrays are off then: the slow paths tell it.
  static constexpr bool kMarksAlways = kChecked;

  [[nodiscard]] void* hand_out(void* slot) noexcept {
    if constexpr (kMarksAlways) {
      if (slot == nullptr) return nullptr;
      if constexpr (kChecked) allocated_.on_allocate(layout_.number(slot), slot);
      layout_.on_allocate(slot);
    }
    return slot;
  }
  [[nodiscard]] bool take_back(void* slot) noexcept {
    if constexpr (kChecked) {
      if (!layout_.is_slot(slot)) {
        base::fatal(layout_.contains(slot) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, slot);
        return false;
      }
      if (!allocated_.on_free(layout_.number(slot), slot)) return false;
    }
    if constexpr (kMarksAlways) layout_.on_free(slot);
    return true;
  }

  // ---- fast paths

  [[nodiscard, gnu::always_inline]] inline void* acquire_from(Array& array) noexcept {
    contention_.operated();
    const std::intptr_t top = array.top.load(std::memory_order_relaxed) - kEntryBytes;  // relaxed: ours
    array.top.store(top, O.owner_sets_top);  // in time for a thief by its heavy fence
    A::light_fence();
    // relaxed: a raised bottom only sends us to the slow path.
    if (top >= array.bottom.load(std::memory_order_relaxed)) [[likely]]
      return hand_out(Arrays::entry(top)->load());
    return hand_out(acquire_slow(array));
  }
  [[gnu::always_inline]] inline void release_to(Array& array, void* slot) noexcept {
    if (!take_back(slot)) return;
    contention_.operated();
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);  // relaxed: ours
    if (Arrays::is_end(top)) [[unlikely]]
      return release_slow(array, slot);
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
  }

  // ---- slow paths

  [[gnu::noinline]] void* acquire_slow(Array& array) noexcept {
    array.top.store(array.top.load(std::memory_order_relaxed) + kEntryBytes, O.owner_sets_top);
    return acquire_for(cache_of(array));
  }

  [[nodiscard]] void* acquire_for(Cache& cache) noexcept {
    switch (arrays_.look_while_dry(cache)) {
      case Dry::kNothing: return nullptr;
      case Dry::kSomething: return acquire_last(&cache);
      case Dry::kIsNot: break;
    }
    if (void* const slot = refill(cache); slot != nullptr) return slot;
    return acquire_last(&cache);
  }

  // The calling thread has no array of this pool in the tables of the shared object that calls.
  [[nodiscard, gnu::noinline, gnu::visibility("hidden")]] void* acquire_unjoined() noexcept {
    if (!home_.is_here()) return home_.acquire(*this);
    if (place_ == Arrays::Place::kNone)
      if (Array* const array = Arrays::further(this); array != nullptr) return acquire_from(*array);
    contention_.operated();
    if (Cache* const cache = join(); cache != nullptr) return hand_out(acquire_for(*cache));
    void* const slot = acquire_directly();
    if constexpr (!kMarksAlways)
      if (slot != nullptr && layout_.watched_by_memcheck()) layout_.on_allocate(slot);
    return hand_out(slot);
  }

  [[gnu::noinline, gnu::visibility("hidden")]] void release_unjoined(void* slot) noexcept {
    if (!home_.is_here()) return home_.release(*this, slot);
    if (place_ == Arrays::Place::kNone)
      if (Array* const array = Arrays::further(this); array != nullptr) return release_to(*array, slot);
    if (!take_back(slot)) return;
    contention_.operated();
    if (Cache* const cache = join(); cache != nullptr) return release_slow(*cache->array, slot);
    if constexpr (!kMarksAlways)
      if (layout_.watched_by_memcheck()) layout_.on_free(slot);
    Entry entry(slot);
    expect_own(&entry, 1);
    if (!uses_arrays_) return put(&slot, 1, nullptr);
    const sync::Guard guard(lock_);  // a dry pool's words are empty
    arrays_.start_all(nullptr);
    put(&slot, 1, nullptr);
  }

  [[nodiscard]] void* refill(Cache& cache) noexcept {
    const SlowPath mark(arrays_, lock_, cache);
    if (void* const slot = List::pop(cache); slot != nullptr) return slot;  // a thief had raised bottom, and left
    if (const std::size_t n = transfer_.take(cache.first(), contention_); n != 0) return List::fill(cache, 0, n);
    // Half a word or less makes the way here hardly worth while: a few more of them. From the top down, so that pops go
    // through memory upwards, which the CPU foresees.
    const std::size_t end = batch_ + batch_ / 2;
    std::size_t begin = end;
    for (unsigned tries = 0; (end - begin) * 2 <= batch_ && tries < kTries; ++tries) {
      const Taken taken = words_.take(cache.cursor, batch_, cache.thread_id, 0);
      if (taken.bits == 0) break;
      begin -= static_cast<std::size_t>(std::popcount(taken.bits));
      (void)list(taken, cache.first() + begin);
    }
    return List::fill(cache, begin, end);
  }

  // Writes the addresses of the slots to entries of an array; returns their number.
  [[nodiscard]] std::size_t list(Taken taken, Entry* out) const noexcept {
    if constexpr (Arrays::kPlain) return layout_.list(taken, Arrays::plain(out));
    void* slots[64];
    const std::size_t n = layout_.list(taken, slots);
    for (std::size_t i = 0; i < n; ++i) out[i].store(slots[i]);
    return n;
  }

  [[gnu::noinline]] void release_slow(Array& array, void* slot) noexcept {
    Cache* const cache = &cache_of(array);
    if (arrays_.push_stopped(lock_, *cache, slot)) return;
    const SlowPath mark(arrays_, lock_, *cache);
    std::intptr_t top = array.top.load(std::memory_order_relaxed);
    const std::intptr_t bottom = array.bottom.load(std::memory_order_relaxed);
    if (Arrays::is_end(top)) {
      // Entries that a thief took have left room below; else the older half goes back.
      std::intptr_t keep = bottom;
      if (bottom == cache->start()) {
        const std::size_t n = batch_;
        expect_own(cache->first(), n);
        if (!are_scattered(cache->first(), n) || !transfer_.put(cache->first(), n, contention_))
          put_entries(bottom, bottom + static_cast<std::intptr_t>(n) * kEntryBytes, cache);
        keep = bottom + static_cast<std::intptr_t>(n * sizeof(Entry));
      }
      top = List::move_down(keep, top, cache->start());
      array.bottom.store(cache->start(), std::memory_order_relaxed);
    }
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
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

  // Gives n <= kMaxBatch slots back to the words.
  void put(void* const* slots, std::size_t n, Cache* cache) noexcept {
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
      if (cache != nullptr) cache->cursor.word = word;
    }
  }

  // Without an array: more pools are alive than have a place, the thread is about to end, a checker watches, or memory for
  // the array is out.
  [[nodiscard]] void* acquire_directly() noexcept {
    const Taken taken = take_some(nullptr);
    return taken.bits != 0 ? settle(nullptr, taken) : acquire_last(nullptr);
  }

  // Nothing in the words: opens memory, or steals. `cache`: the caller's, if it has one; it is not in its slow path.
  [[gnu::noinline]] void* acquire_last(Cache* cache) noexcept {
    const sync::Guard guard(lock_);
    if (arrays_.is_dry()) return arrays_.take_stopped(cache);
    if (cache != nullptr)  // what was pushed while the array was stopped
      if (void* const slot = List::pop(*cache); slot != nullptr) return slot;
    // Again, since others may have opened or stolen before us. No thief is about: we hold the lock.
    void* const slot = take_kept(cache);
    if (slot != nullptr) return slot;
    Taken taken = take_some(cache);
    if (taken.bits == 0) taken = open(cache != nullptr ? batch_ : 1);
    return taken.bits != 0 ? settle(cache, taken) : steal(cache);
  }

  // A batch from another thread's drain: one slot for the caller, the others into its array or to the words. Pre: the lock
  // is held.
  [[nodiscard]] void* take_kept(Cache* cache) noexcept {
    if (cache != nullptr) return List::fill(*cache, 0, transfer_.take(cache->first(), contention_));
    Entry batch[Transfer::kBatch];
    const std::size_t n = transfer_.take(batch, contention_);
    if (n == 0) return nullptr;
    put_entries(Arrays::address(batch), Arrays::address(batch + n - 1));
    return batch[n - 1].load();
  }

  [[nodiscard]] Taken take_some(Cache* cache) noexcept {
    Cursor cursor;
    const std::uint32_t thread_id = cache != nullptr ? cache->thread_id : A::thread_number() + 1;
    const Taken taken = words_.take(cursor, cache != nullptr ? batch_ : 1, thread_id, 0);
    words_.clear_active(cursor, thread_id);
    return taken;
  }

  // One of the slots for the caller, the others into its array. Pre: the lock is held or the cache is in its slow path.
  [[nodiscard]] void* settle(Cache* cache, Taken taken) noexcept {
    if (cache == nullptr) return layout_.address(taken.word, base::lowest_bit(taken.bits));
    cache->cursor.word = taken.word;
    return List::fill(*cache, 0, list(taken, cache->first()));
  }

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

  // Empties the other threads' arrays; one slot is the caller's, the rest goes to the words. Null: at the moment when all
  // were stopped, no slot was free. They stay stopped then, unless memory might be opened later. Pre: the lock is held.
  [[nodiscard]] void* steal(Cache* mine) noexcept {
    if (!steals_) return nullptr;
    if (!arrays_.stop_others(mine)) return nullptr;
    void* slot = take_kept(mine);
    if (slot == nullptr)
      if (const Taken taken = take_some(mine); taken.bits != 0) slot = settle(mine, taken);
    const bool found = slot != nullptr;
    arrays_.for_each_other(mine, [&](Cache& cache) {
      std::intptr_t from = cache.bottom_before.load(std::memory_order_relaxed);
      const std::intptr_t top = List::top_of(cache, from);
      if (slot == nullptr && from < top) {
        slot = Arrays::entry(from)->load();
        from += kEntryBytes;
      }
      if (!found) {
        put_entries(from, top);
        from = top;
      }
      cache.bottom_before.store(from, std::memory_order_relaxed);  // relaxed: ours, under the lock
    });
    if (slot == nullptr && opened_.load(std::memory_order_relaxed) == layout_.words())
      arrays_.go_dry(mine);
    else
      arrays_.start_others(mine);
    return slot;
  }

  // Whether most entries, of a sample, lie so far from the one before that each would cost an atomic in the words. They stay
  // together then. Only the array's owner may do so, in its slow path: thieves wait for that.
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

  // Gives the entries [from, top) of an array back to the words.
  void put_entries(std::intptr_t from, std::intptr_t top, Cache* cache = nullptr) noexcept {
    while (from < top) {
      const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(top - from) / sizeof(Entry), 64);
      Entry* const entries = Arrays::entry(from);
      expect_own(entries, n);
      if constexpr (Arrays::kPlain) {
        put(Arrays::plain(entries), n, cache);
      } else {
        void* slots[64];
        for (std::size_t i = 0; i < n; ++i) slots[i] = entries[i].load();
        put(slots, n, cache);
      }
      from += static_cast<std::intptr_t>(n) * kEntryBytes;
    }
  }

  // ---- a thread's coming and going

  // Pre: a thread's array of this pool.
  [[nodiscard]] static Cache& cache_of(Array& array) noexcept { return *static_cast<Cache*>(array.cache); }

  // Gives the calling thread an array of this pool, on the cache of a thread that has ended or on a new one. Null: it can
  // have none. Pre: it has none; we are in the pool's home.
  [[nodiscard, gnu::visibility("hidden")]] Cache* join() noexcept {
    Array* const unused = uses_arrays_ ? Arrays::unused(this, place_) : nullptr;
    if (unused == nullptr) return nullptr;
    Array& array = *unused;
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    Cache* const cache = arrays_.unused(*this);
    if (cache == nullptr) return nullptr;
    cache->array = &array;
    cache->capacity = entries_;
    cache->thread_id = A::thread_number() + 1;
    array.cache = cache;
    array.pool.store(this, std::memory_order_relaxed);
    array.bottom.store(cache->start(), std::memory_order_relaxed);  // relaxed: thieves read it after our slow paths
    array.top.store(cache->start(), std::memory_order_relaxed);
    Arrays::at_exit();
    return cache;
  }

  // The owner's end: its slots go back to the words.
  void leave(Cache& cache) noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(&cache);
    Array& array = *cache.array;
    put_entries(array.bottom.load(std::memory_order_relaxed), array.top.load(std::memory_order_relaxed));
    words_.clear_active(cache.cursor, cache.thread_id);
    cache.array = nullptr;
    array.clear();
  }

  // Nobody writes after construction.
  typename Arrays::Place place_{};
  typename Arrays::Places& places_ = Arrays::places();
  Home<A, BestPool> home_;
  SlotLayout layout_;
  Spans spans_;
  AllocatedSlots allocated_;
  Transfer transfer_;
  unsigned entries_;
  unsigned batch_;
  bool growing_;
  bool uses_arrays_ = false;
  bool steals_;  // the kernel has membarrier
  Words words_;
  // Slow paths, under the lock (opened_ is read by anyone).
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  typename A::template atomic<std::uint32_t> opened_{0};  // words
  List arrays_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

/// The strategy of BestPool; see PoolStrategy.
struct Best {
  /// Its name on command lines and in tables.
  static constexpr std::string_view kName = "best";
  /// Where it comes from.
  static constexpr std::string_view kSource = "article 2, the pool its author wished for";
  /// Acquire finds the last free slot, in whatever thread it was released.
  static constexpr bool kFindsLast = true;
  /// Models explore it with fewer preemptions.
  static constexpr bool kManySteps = true;
  /// Bytes a slot, at most.
  static constexpr double kBookkeepingBytes = 0.9;  // slots of 1 KiB; 0.65 for small ones
  /// Its memory orders.
  static constexpr BestPoolOrders kOrders{};
  /// Orders whose weakening no test can see.
  static constexpr std::array kUnobservable{
      Unobservable{6, "the heavy fence before publishes the same, and all look at the arrays in one order"}};
  /// The pool on a machine.
  /// @tparam A           the machine's atomics
  /// @tparam Contention  what is counted
  /// @tparam O           memory orders; for tests
  template <sync::Atomics A, class Contention = sync::IgnoreContention, BestPoolOrders O = kOrders>
  using Pool = BestPool<A, Contention, O>;
};

}  // namespace freehold::pool
