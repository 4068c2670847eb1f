// BestPool: the one pool. A small array of free slots for each thread over one-bit-a-slot words that nobody owns (WordPool,
// the core of the malloc engine, too). acquire pops the array, release pushes it: no atomic read-modify-write, no shared
// line, and the slot itself is not touched. An empty array takes a whole word at once (64 slots by one exchange), a full
// one gives its older half back, grouped by word. Memory is opened as it is needed, in ascending order.
//
//   Invariants:  start <= bottom <= top <= end for each array, at rest; the entries in [bottom, top) are free slots.
//                A slot is in exactly one place: in a word (its bit is set), in one array, in a batch of the transfer cache
//                (transfer_cache.hpp), not yet opened, or in use.
//
// The last free slot is found even in another thread's array. Who finds nothing elsewhere takes the pool's lock, raises
// `stealing` at every other array, keeps its owner out of its slow path, sets `bottom` beyond its top and fences heavily:
// from then on the owner's pop, which has stored its new top before it looks at bottom, either shows in `top`, or sees the
// raised bottom and goes to the slow path, where it waits. That is Dekker's protocol with the fence on one side only
// (membarrier): the fast path pays for it with a compare that it needs anyhow.
//
// A thief who found nothing leaves every array stopped, its own, too: the pool is *dry*. Owners may still push, but pop only
// under the lock, so that a stopped array only grows: as long as each top stands where it stood, no slot is free, and
// acquire answers null after a look at the tops. What was pushed is taken from a stopped array under the lock, without a
// fence. An owner that needs its array (to pop for the 16th time in a row, or because it is full), a thread that joins and
// one that ends start all arrays again.
//   Invariant: dry_ is odd  <=>  every array is stopped; then words and batches are empty, the entries in
//              [bottom_before, top) of the arrays are the only free slots, and dry_ changes before one of them is taken.
//
// Any thread; acquire never throws and returns null only if no slot is free (growing: or memory is out). Lock-free but where
// memory is opened and where slots are stolen. A thread's array goes back when the thread ends.
// Cost: 8 or 9 instructions each; one atomic on a word per 64 slots each way; a steal takes some microseconds.
// Bookkeeping: 1 bit a slot and 1/64 of it for summaries; up to half a byte more while scattered slots are on their way; a
// thread that uses the pool 1 KiB, and 4 KiB of thread-local storage for its first 127 pools (with more alive at once, the
// others' arrays are looked up, which costs a pair some 8 ns). Held in a thread's array: at most kMaxEntries slots, 64 KiB,
// or an eighth of a pool of fixed capacity, whichever is least.
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
#include <cstring>
#include <limits>
#include <new>

#include "freehold/base/check.hpp"
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

enum class Growth : std::uint8_t {
  kFixed,    // all memory is there from the beginning: acquire fails only when every slot is in use
  kGrowing,  // address space for the capacity, memory as it is needed: acquire fails when that cannot be had, too
};

struct BestPoolOrders {
  // release: a thief who reads this top reads the entries below it. Every store of top, since in C++20 a later relaxed one
  // would not continue the release sequence of an earlier one.
  std::memory_order owner_sets_top = std::memory_order_release;
  // acquire: pairs with owner_sets_top.
  std::memory_order thief_reads_top = std::memory_order_acquire;
  // release: what the owner did to its array in the slow path, for a thief that waited for its end.
  std::memory_order owner_leaves = std::memory_order_release;
  // acquire: pairs with owner_leaves.
  std::memory_order thief_waits = std::memory_order_acquire;
  // release: the thief is done with the array. (The owner, who waits by taking the lock, would do without.)
  std::memory_order thief_leaves = std::memory_order_release;
  // acquire: pairs with thief_leaves; the entries that the thief took may be overwritten.
  std::memory_order owner_enters = std::memory_order_acquire;
  // release: the list of arrays, and where each is stopped, for who looks at them without the lock; and that dry_ changed,
  // for who sees that an entry is gone.
  std::memory_order goes_dry = std::memory_order_release;
  // acquire: pairs with goes_dry.
  std::memory_order asks_dry = std::memory_order_acquire;
  // Of batches of scattered slots on their way between threads.
  TaggedStackOrders transfer{};
};

template <sync::Atomics A, class Contention, BestPoolOrders O>
class BestPool {
  using Arrays = ThreadArrays<A>;
  using Array = typename Arrays::Array;
  using Entry = typename Arrays::Entry;
  static constexpr std::intptr_t kEntryBytes = sizeof(Entry);
  using Transfer = TransferCache<A, O.transfer>;
  static constexpr unsigned kTries = 8;   // words that a refill looks at for half a batch
  static constexpr unsigned kSample = 8;  // entries that decide whether a batch is scattered

 public:
  [[gnu::visibility("hidden")]] explicit BestPool(const PoolShape& shape) : BestPool(shape, Growth::kFixed) {}
  // Errors: std::bad_alloc.
  [[gnu::visibility("hidden")]] BestPool(const PoolShape& shape, Growth growth)
      : layout_(shape, growth == Growth::kFixed ? SlotLayout::Backing::kCommitted : SlotLayout::Backing::kReserved),
        blocks_(layout_.blocks(), layout_.shape().words()),
        handed_out_(layout_.numbers()),
        transfer_(layout_.slots()),
        entries_(entries_for(shape, growth)),
        batch_(entries_ >= kWholeWords ? 64 : (entries_ + 1) / 2),
        growing_(growth == Growth::kGrowing),
        steals_(A::may_fence_heavily()) {
    blocks_.pool = &words_;
    words_.attach(&blocks_, 0, layout_.shape(), blocks_.tree.data(), 1, layout_.blocks());
    // Without stealing, a pool of fixed capacity has no arrays to hide its last slots in; a growing one stops short of them.
    arrays_ = !layout_.watched_by_memcheck() && (growing_ || steals_);
    if (arrays_) place_ = places_.claim();
  }
  BestPool(const BestPool&) = delete;
  BestPool& operator=(const BestPool&) = delete;
  // Pre: no thread uses the pool any more. Slots in use end with it.
  [[gnu::visibility("hidden")]] ~BestPool() {
    // Asked again: a simulated machine has others when an execution was cut short.
    auto& places = home_.is_here() ? Arrays::places() : places_;
    const sync::Guard global(places.lock);
    while (Cache* const cache = caches_.load()) {
      caches_.store(cache->next);
      if (cache->array != nullptr) cache->array->clear();
      delete cache;
    }
    places.give_up(place_);
  }

  // A free slot, or null.
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return acquire_unjoined();
    return acquire_from(array);
  }

  // Takes a slot back that acquire() of this pool gave, from any thread.
  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return release_unjoined(slot);
    release_to(array, slot);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return layout_.slots(); }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return layout_.slot_bytes(); }
  // The most slots that were out at once, counted when memory was opened: at least as many as were in use, and at most an
  // eighth more, a thread's array for each thread, and 64.
  [[nodiscard]] std::size_t high_water() const noexcept {
    return layout_.slots_before(opened_.load(std::memory_order_relaxed));  // relaxed: a statistic
  }
  // Slots that are free without opening memory, in words and arrays; exact at rest.
  [[nodiscard]] std::size_t free_slots() noexcept {
    const sync::Guard guard(lock_);
    start_arrays(nullptr);
    std::size_t n = transfer_.kept();
    for (std::uint32_t block = 0; block < layout_.blocks(); ++block) n += words_.free_slots(block);
    for (const Cache* cache = caches_.load(); cache != nullptr; cache = cache->next)
      if (cache->array != nullptr) n += Arrays::entries(*cache->array);
    return n;
  }
  [[nodiscard]] sync::Contention contention() const noexcept {
    sync::Contention all = contention_.total();
    all.waits += lock_.waits().count();
    return all;
  }

  // Gives the memory of blocks that are wholly free back to the system; they stay usable. Returns bytes.
  // Any thread. Cost: a pass over the blocks that were opened, under the lock: who finds no slot meanwhile waits and looks
  // again, since what is passing through here is free.
  std::size_t trim() noexcept {
    const sync::Guard guard(lock_);
    std::size_t bytes = 0;
    Entry batch[Transfer::kBatch];
    while (const std::size_t n = transfer_.take(batch, contention_))
      put_entries(Arrays::address(batch), Arrays::address(batch + n));
    const std::uint32_t whole = opened_.load(std::memory_order_relaxed) / layout_.shape().words();
    for (std::uint32_t block = 0; block < whole; ++block) {
      if (!layout_.is_whole(block) || !words_.take_all(block)) continue;
      bytes += layout_.purge(block);
      for (unsigned w = 0; w < layout_.shape().words(); ++w) (void)words_.put(word_index(block, w), layout_.shape().full(w));
    }
    return bytes;
  }

  // The invariants in the head; call at rest.
  [[nodiscard]] bool check_invariants() noexcept {
    const sync::Guard guard(lock_);
    start_arrays(nullptr);
    for (std::uint32_t block = 0; block < layout_.blocks(); ++block)
      if (!words_.check_span(block)) return false;
    for (const Cache* cache = caches_.load(); cache != nullptr; cache = cache->next) {
      if (cache->array == nullptr) continue;
      const Array& array = *cache->array;
      const std::intptr_t bottom = array.bottom.load(std::memory_order_relaxed);
      const std::intptr_t top = array.top.load(std::memory_order_relaxed);
      if (cache->start() > bottom || bottom > top || top > cache->end()) return false;
    }
    return true;
  }

 private:
  struct Blocks;
  struct Cache;
  struct WordsConfig {
    using Storage = BestPool::Blocks;
    using Orders = WordPoolOrders;
  };
  using Words = WordPool<A, WordsConfig>;
  using Word = typename Words::Word;

  // The bitmap. A block never changes hands here.
  struct Blocks {
    Blocks(std::size_t blocks, unsigned words_a_block)
        : words_a_block(words_a_block),
          bits(blocks * words_a_block),
          summaries(blocks),
          last_users(blocks),
          tree(SummaryTree<A>::words_for(blocks)) {}

    Word& word(WordIndex index) const noexcept {
      return bits[std::size_t{span_of(index)} * words_a_block + word_in_span(index)];
    }
    Word& summary(std::uint32_t block) const noexcept { return summaries[block]; }
    auto& last_user(std::uint32_t block) const noexcept { return last_users[block]; }
    static constexpr bool belongs(std::uint32_t, unsigned) noexcept { return true; }
    SummaryTree<A>* tree_of(std::uint32_t) const noexcept { return &pool->tree(); }

    std::size_t words_a_block;
    ZeroedArray<Word> bits, summaries;
    ZeroedArray<typename A::template atomic<std::uint32_t>> last_users;
    ZeroedArray<Word> tree;
    Words* pool = nullptr;
  };

  // A thread's share. The array's ends lie in the thread's own storage (ThreadArrays), where the fast path finds them.
  struct CacheHead : ThreadCacheBase {
    BestPool* pool = nullptr;
    Array* array = nullptr;  // under the pool's lock; null: its thread has ended
    Cache* next = nullptr;
    Cursor cursor;
    std::uint32_t who = 0;
    unsigned capacity = 0;
    // Where a stopped array begins; written under the pool's lock.
    typename A::template atomic<std::intptr_t> bottom_before{0};
    // Owner: it is in its slow path, or looks at stopped arrays. Thief, under the pool's lock: it wants the array.
    typename A::template atomic<std::uint32_t> in_slow_path{0};
    typename A::template atomic<std::uint32_t> stealing{0};
  };
  static constexpr unsigned kMaxEntries = (Arrays::kBytes - sizeof(CacheHead)) / sizeof(Entry);
  struct alignas(Arrays::kBytes) Cache : CacheHead {
    Entry entries[kMaxEntries];  // the last `capacity` of them

    [[nodiscard]] Entry* first() noexcept { return entries + (kMaxEntries - this->capacity); }
    [[nodiscard]] std::intptr_t start() const noexcept { return Arrays::address(entries + (kMaxEntries - this->capacity)); }
    [[nodiscard]] std::intptr_t end() const noexcept { return Arrays::address(entries + kMaxEntries); }
  };
  static_assert(sizeof(CacheHead) % sizeof(Entry) == 0 && sizeof(Cache) == Arrays::kBytes, "no room behind the last entry");
  // Arrays of so many entries trade whole words, which costs least; a refill that begins with half a batch must fit, too.
  static constexpr unsigned kWholeWords = 96;
  static_assert(kMaxEntries >= kWholeWords && Transfer::kBatch >= 64);

  // Keeps thieves out for as long as the owner works on its array and cursor.
  class SlowPath {
   public:
    SlowPath(BestPool& pool, Cache& cache) noexcept : cache_(cache) {
      for (;;) {
        cache.in_slow_path.store(1, std::memory_order_relaxed);  // relaxed: the thief's heavy fence makes it visible
        A::light_fence();
        if (cache.stealing.load(O.owner_enters) == 0) return;
        cache.in_slow_path.store(0, std::memory_order_relaxed);  // relaxed: nothing was done
        const sync::Guard guard(pool.lock_);                     // the thief holds it, or has left the array stopped
        pool.start_arrays(&cache);
      }
    }
    ~SlowPath() { cache_.in_slow_path.store(0, O.owner_leaves); }
    SlowPath(const SlowPath&) = delete;
    SlowPath& operator=(const SlowPath&) = delete;

   private:
    Cache& cache_;
  };

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
      if constexpr (kChecked) handed_out_.begins(layout_.number(slot), slot);
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
      if (!handed_out_.ends(layout_.number(slot), slot)) return false;
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
    switch (look_while_dry(cache)) {
      case Dry::kNothing: return nullptr;
      case Dry::kSomething: return acquire_last(&cache);
      case Dry::kIsNot: break;
    }
    if (void* const slot = refill(*cache.array, cache); slot != nullptr) return slot;
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
    if (!arrays_) return put(&slot, 1, nullptr);
    const sync::Guard guard(lock_);  // a dry pool's words are empty
    start_arrays(nullptr);
    put(&slot, 1, nullptr);
  }

  [[nodiscard]] void* refill(Array& array, Cache& cache) noexcept {
    const SlowPath mark(*this, cache);
    if (void* const slot = pop_own(cache); slot != nullptr) return slot;  // a thief had raised bottom, and left
    if (const std::size_t n = transfer_.take(cache.first(), contention_); n != 0) return filled(array, cache, 0, n);
    // Half a word or less makes the way here hardly worth while: a few more of them. From the top down, so that pops go
    // through memory upwards, which the CPU foresees.
    const std::size_t end = batch_ + batch_ / 2;
    std::size_t begin = end;
    for (unsigned tries = 0; (end - begin) * 2 <= batch_ && tries < kTries; ++tries) {
      const Taken taken = words_.take(cache.cursor, batch_, cache.who, 0);
      if (taken.bits == 0) break;
      begin -= static_cast<std::size_t>(std::popcount(taken.bits));
      (void)list(taken, cache.first() + begin);
    }
    return filled(array, cache, begin, end);
  }

  // The newest entry of the caller's array, or null. Pre: in its slow path, or the lock is held and the array not stopped.
  [[nodiscard]] static void* pop_own(Cache& cache) noexcept {
    Array& array = *cache.array;
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);
    if (top <= array.bottom.load(std::memory_order_relaxed)) return nullptr;
    array.top.store(top - kEntryBytes, O.owner_sets_top);
    return Arrays::entry(top - kEntryBytes)->load();
  }

  // Writes the addresses of the slots to entries of an array; returns their number.
  [[nodiscard]] std::size_t list(Taken taken, Entry* out) const noexcept {
    if constexpr (Arrays::kPlain) return layout_.list(taken, Arrays::plain(out));
    void* slots[64];
    const std::size_t n = layout_.list(taken, slots);
    for (std::size_t i = 0; i < n; ++i) out[i].store(slots[i]);
    return n;
  }

  // The entries from `begin` to `end` of the array are new; returns the last of them, which the caller takes, null if there
  // is none. Pre: in the slow path, or the lock is held; the array was empty.
  [[nodiscard]] void* filled(Array& array, Cache& cache, std::size_t begin, std::size_t end) noexcept {
    if (begin == end) return nullptr;
    array.bottom.store(cache.start() + static_cast<std::intptr_t>(begin) * kEntryBytes, std::memory_order_relaxed);
    array.top.store(cache.start() + static_cast<std::intptr_t>(end - 1) * kEntryBytes, O.owner_sets_top);
    return cache.first()[end - 1].load();
  }

  [[gnu::noinline]] void release_slow(Array& array, void* slot) noexcept {
    Cache* const cache = &cache_of(array);
    if (push_stopped(*cache, slot)) return;
    const SlowPath mark(*this, *cache);
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
      top = move_down(keep, top, cache->start());
      array.bottom.store(cache->start(), std::memory_order_relaxed);
    }
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
  }

  // Moves the entries [from, top) to `to`; returns their new end.
  static std::intptr_t move_down(std::intptr_t from, std::intptr_t top, std::intptr_t to) noexcept {
    if constexpr (Arrays::kPlain) {
      std::memmove(Arrays::entry(to), Arrays::entry(from), static_cast<std::size_t>(top - from));
      return to + (top - from);
    }
    Entry* out = Arrays::entry(to);
    for (const Entry* in = Arrays::entry(from); in != Arrays::entry(top); ++in) (out++)->store(in->load());
    return Arrays::address(out);
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
    if (is_dry()) return take_stopped(cache);
    if (cache != nullptr)  // what was pushed while the array was stopped
      if (void* const slot = pop_own(*cache); slot != nullptr) return slot;
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
    if (cache != nullptr) return filled(*cache->array, *cache, 0, transfer_.take(cache->first(), contention_));
    Entry batch[Transfer::kBatch];
    const std::size_t n = transfer_.take(batch, contention_);
    if (n == 0) return nullptr;
    put_entries(Arrays::address(batch), Arrays::address(batch + n - 1));
    return batch[n - 1].load();
  }

  [[nodiscard]] Taken take_some(Cache* cache) noexcept {
    Cursor cursor;
    const std::uint32_t who = cache != nullptr ? cache->who : A::thread_number() + 1;
    const Taken taken = words_.take(cursor, cache != nullptr ? batch_ : 1, who, 0);
    words_.clear_active(cursor, who);
    return taken;
  }

  // One of the slots for the caller, the others into its array. Pre: the lock is held or the cache is in its slow path.
  [[nodiscard]] void* settle(Cache* cache, Taken taken) noexcept {
    if (cache == nullptr) return layout_.address(taken.word, base::lowest_bit(taken.bits));
    cache->cursor.word = taken.word;
    return filled(*cache->array, *cache, 0, list(taken, cache->first()));
  }

  // Opens the next words; `want` slots of the first are the caller's. Pre: the lock is held. Larger steps as the pool grows,
  // so that the high-water mark is off by an eighth at most.
  [[nodiscard]] Taken open(unsigned want) noexcept {
    const std::uint32_t first = opened_.load(std::memory_order_relaxed);  // relaxed: written under the lock
    const std::uint32_t all = layout_.words();
    if (first == all) return {};
    const unsigned a_block = layout_.shape().words();
    const std::uint32_t n = std::min({std::max(first / 8, 1U), a_block - first % a_block, all - first});
    if (growing_ && !layout_.commit(first, n)) return {};
    const std::uint32_t block = first / a_block;
    Taken mine{word_index(block, first % a_block), layout_.full(first)};
    for (std::uint32_t w = first + 1; w < first + n; ++w) (void)words_.put(word_index(block, w % a_block), layout_.full(w));
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
    if (!stop_arrays(mine)) return nullptr;
    void* slot = take_kept(mine);
    if (slot == nullptr)
      if (const Taken taken = take_some(mine); taken.bits != 0) slot = settle(mine, taken);
    const bool found = slot != nullptr;
    for_each_victim(mine, [&](Cache& cache) {
      std::intptr_t from = cache.bottom_before.load(std::memory_order_relaxed);
      // An owner that has stored its new top and not yet looked at bottom shows one entry less: it will be its own.
      const std::intptr_t top = std::max(cache.array->top.load(O.thief_reads_top), from);
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
      go_dry(mine);
    else
      for_each_victim(mine, [](Cache& cache) { start_array(cache); });
    return slot;
  }

  // Keeps the other threads out of their arrays, but for pushes. False: there is no other array. Pre: the lock is held.
  [[nodiscard]] bool stop_arrays(Cache* mine) noexcept {
    bool any = false;
    for_each_victim(mine, [&](Cache& cache) {
      any = true;
      cache.stealing.store(1, std::memory_order_relaxed);  // relaxed: fenced below
    });
    if (!any) return false;
    A::heavy_fence();
    // From here on no owner enters its slow path; those that are in it come to its end.
    for_each_victim(mine, [](Cache& cache) {
      while (cache.in_slow_path.load(O.thief_waits) != 0) A::pause();
      stop_array(cache);
    });
    A::heavy_fence();
    // From here on no owner pops either: slots that are free stay free.
    return true;
  }
  static void stop_array(Cache& cache) noexcept {
    cache.bottom_before.store(cache.array->bottom.load(std::memory_order_relaxed), std::memory_order_relaxed);
    cache.array->bottom.store(Arrays::kRaised, std::memory_order_relaxed);  // relaxed: fenced by the caller
  }
  static void start_array(Cache& cache) noexcept {
    // relaxed: the owner's pop may miss it and wait for us
    cache.array->bottom.store(cache.bottom_before.load(std::memory_order_relaxed), std::memory_order_relaxed);
    cache.stealing.store(0, O.thief_leaves);
  }

  // ---- a dry pool

  enum class Dry : std::uint8_t { kIsNot, kNothing, kSomething };
  // Acquires in a row that find something in a dry pool before its arrays are started again.
  static constexpr std::uint32_t kHitsToStart = 16;

  // Pre: the lock is held.
  [[nodiscard]] bool is_dry() const noexcept { return (dry_.load(std::memory_order_relaxed) & 1) != 0; }

  // Pre: the lock is held, all arrays but `mine` are stopped, and nothing is free.
  void go_dry(Cache* mine) noexcept {
    if (mine != nullptr) {
      mine->stealing.store(1, std::memory_order_relaxed);  // relaxed: it is the caller's own
      stop_array(*mine);
    }
    hits_.store(0, std::memory_order_relaxed);
    dry_.store(dry_.load(std::memory_order_relaxed) + 1, O.goes_dry);
  }

  // Whether the pool is dry, and if so whether anything came back since. No array is started or ends meanwhile: who does
  // that waits for us. Tops of stopped arrays only grow, so that those that stand where they stood did so when the first of
  // them was looked at.
  [[nodiscard]] Dry look_while_dry(Cache& cache) noexcept {
    if ((dry_.load(std::memory_order_relaxed) & 1) == 0) return Dry::kIsNot;  // relaxed: a glance
    cache.in_slow_path.store(1, std::memory_order_relaxed);                   // relaxed: start_arrays() fences heavily
    A::light_fence();
    const std::uint64_t dry = dry_.load(O.asks_dry);
    Dry found = (dry & 1) != 0 ? Dry::kNothing : Dry::kIsNot;
    if (found == Dry::kNothing) {
      for (Cache* each = caches_.load(); each != nullptr; each = each->next) {
        const Array* const array = each->array;
        if (array == nullptr) continue;
        const std::intptr_t bottom = each->bottom_before.load(O.asks_dry);
        if (array->top.load(O.thief_reads_top) > bottom) found = Dry::kSomething;
      }
      if (dry_.load(std::memory_order_relaxed) != dry) found = Dry::kSomething;  // relaxed: see goes_dry
    }
    cache.in_slow_path.store(0, O.owner_leaves);
    // relaxed: a statistic
    if (found == Dry::kNothing && hits_.load(std::memory_order_relaxed) != 0) hits_.store(0, std::memory_order_relaxed);
    return found;
  }

  // A slot that came back since the pool went dry; null: none did. Pre: the lock is held, the pool is dry.
  [[nodiscard]] void* take_stopped(Cache* mine) noexcept {
    void* slot = mine != nullptr ? take_oldest(*mine) : nullptr;
    for_each_victim(mine, [&](Cache& cache) {
      if (slot == nullptr) slot = take_oldest(cache);
    });
    if (slot == nullptr) return nullptr;
    const std::uint32_t hits = hits_.load(std::memory_order_relaxed) + 1;  // relaxed, both: a statistic
    hits_.store(hits, std::memory_order_relaxed);
    if (hits >= kHitsToStart) start_arrays(mine);
    return slot;
  }
  [[nodiscard]] void* take_oldest(Cache& cache) noexcept {
    const std::intptr_t bottom = cache.bottom_before.load(std::memory_order_relaxed);
    if (cache.array->top.load(O.thief_reads_top) <= bottom) return nullptr;
    void* const slot = Arrays::entry(bottom)->load();
    dry_changed();
    cache.bottom_before.store(bottom + kEntryBytes, O.goes_dry);
    return slot;
  }
  // Who looks at the arrays looks again. Pre: the lock is held, the pool is dry.
  void dry_changed() noexcept { dry_.store(dry_.load(std::memory_order_relaxed) + 2, O.goes_dry); }

  // Puts a slot into the caller's array, which is at its end, if that is stopped and something was taken from below.
  [[nodiscard]] bool push_stopped(Cache& cache, void* slot) noexcept {
    if ((dry_.load(std::memory_order_relaxed) & 1) == 0) return false;  // relaxed: a glance
    const sync::Guard guard(lock_);
    Array& array = *cache.array;
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);
    const std::intptr_t bottom = cache.bottom_before.load(std::memory_order_relaxed);
    if (!is_dry() || !Arrays::is_end(top) || bottom == cache.start()) return false;
    // Its top goes back: who looks meanwhile sees something in it, or sees that dry_ changed.
    cache.bottom_before.store(std::numeric_limits<std::intptr_t>::min(), O.goes_dry);
    dry_changed();
    const std::intptr_t end = move_down(bottom, top, cache.start());
    Arrays::entry(end)->store(slot);
    array.top.store(end + kEntryBytes, O.owner_sets_top);
    cache.bottom_before.store(cache.start(), O.goes_dry);
    return true;
  }

  // Ends a dry pool's state, when nobody looks at the arrays any more. `mine`: the caller's, who is not in its slow path.
  // Pre: the lock is held. Cost: a heavy fence, if the pool is dry.
  void start_arrays(const Cache* mine) noexcept {
    if (!is_dry()) return;
    dry_.store(dry_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // relaxed: fenced below
    A::heavy_fence();
    for_each_victim(mine, [](Cache& cache) {
      while (cache.in_slow_path.load(O.thief_waits) != 0) A::pause();
    });
    for_each_victim(nullptr, [](Cache& cache) { start_array(cache); });
  }

  template <class F>
  void for_each_victim(const Cache* mine, F&& f) noexcept {
    for (Cache* cache = caches_.load(); cache != nullptr; cache = cache->next)
      if (cache != mine && cache->array != nullptr) f(*cache);
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
    Array* const unused = arrays_ ? Arrays::unused(this, place_) : nullptr;
    if (unused == nullptr) return nullptr;
    Array& array = *unused;
    const sync::Guard guard(lock_);
    start_arrays(nullptr);
    Cache* cache = caches_.load();
    while (cache != nullptr && cache->array != nullptr) cache = cache->next;
    if (cache == nullptr) {
      cache = new (std::nothrow) Cache;
      if (cache == nullptr) return nullptr;
      cache->pool = this;
      cache->leave = [](ThreadCacheBase* leaving) noexcept {
        auto* const mine = static_cast<Cache*>(leaving);
        mine->pool->leave(*mine);
      };
      cache->next = caches_.load();
      caches_.store(cache);
    }
    cache->array = &array;
    cache->capacity = entries_;
    cache->who = A::thread_number() + 1;
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
    start_arrays(&cache);
    Array& array = *cache.array;
    put_entries(array.bottom.load(std::memory_order_relaxed), array.top.load(std::memory_order_relaxed));
    words_.clear_active(cache.cursor, cache.who);
    cache.array = nullptr;
    array.clear();
  }

  // Nobody writes after construction.
  typename Arrays::Place place_{};
  typename Arrays::Places& places_ = Arrays::places();
  Home<A, BestPool> home_;
  SlotLayout layout_;
  Blocks blocks_;
  HandedOut handed_out_;
  Transfer transfer_;
  unsigned entries_;
  unsigned batch_;
  bool growing_;
  bool arrays_ = false;
  bool steals_;  // the kernel has membarrier
  Words words_;
  // Slow paths, under the lock (opened_ is read by anyone).
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  typename A::template atomic<std::uint32_t> opened_{0};  // words
  // Changes while the pool is dry, or goes so: under the lock, but for hits_.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> dry_{0};  // odd: the pool is dry
  typename A::template var<Cache*> caches_{nullptr};
  typename A::template atomic<std::uint32_t> hits_{0};  // acquires that found something in the dry pool, in a row
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct Best {
  static constexpr std::string_view kName = "best";
  static constexpr std::string_view kSource = "article 2, the pool its author wished for";
  static constexpr bool kFindsLast = true;
  static constexpr bool kManySteps = true;
  static constexpr double kBookkeepingBytes = 0.9;  // slots of 1 KiB; 0.65 for small ones
  static constexpr BestPoolOrders kOrders{};
  static constexpr std::array kUnobservable{
      Unobservable{6, "the heavy fence before publishes the same, and all look at the arrays in one order"}};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, BestPoolOrders O = kOrders>
  using Pool = BestPool<A, Contention, O>;
};

}  // namespace freehold::pool
