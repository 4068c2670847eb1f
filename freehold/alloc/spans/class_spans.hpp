// SPDX-License-Identifier: MIT
// The spans of size classes and their slots: how slots leave and enter the word pools, and which spans are worth a look.
//
// A span is added to a class by add_span(). A span whose slots are all free is noted in the set of empties, by the thread
// that gives the last one back, and reclaim_span() takes it from its class: all of its slots at once, or none. A search of
// the former class may still have the span in mind, so take_slots() asks for the class after it took slots, while it cannot
// change.
//
//   Invariants: span_class(s) == c  <=>  s belongs to pools[c]; it changes only while the thread that changes it holds every
//               slot of s (so no pointer into s is live and no drain can be under way).
//               A span of a class whose slots are all free, at rest, is in the set of empties.
//               A span of a class in which slots became free since its pages were last looked at is in the set of drained.
//
// Any thread, no lock.
#pragma once
#include <algorithm>
#include <bit>
#include <span>

#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/alloc/return/budget.hpp"
#include "freehold/alloc/return/purge_due.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "freehold/alloc/spans/arena_types.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/config.hpp"
#include "freehold/slots/slot_groups.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/slots/word_pool.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config>
class ArenaSlots {
 public:
  using Units = ArenaUnits<Config>;
  using Classes = typename Config::Classes;
  using SpanType = Span<A>;
  using Hints = SpanHints<A>;
  using Word = typename A::template atomic<std::uint64_t>;
  using ClassByte = typename A::template atomic<std::uint8_t>;
  using Tree = pool::SummaryTree<A>;

  // One bit for each slot of a span, set when free, in words. Classes whose spans need few have them in a table where these
  // lie side by side: of large slots a page has the words of 64 spans, not of 8, for a fork's child to copy and for what is
  // left of a spike. A span's words in the table of other classes than its own are 0.
  struct WordTable {
    Word* first = nullptr;
    std::uint32_t words_per_span = 0, skipped = 0;  // words of the 64 that a WordIndex has for a span
    constexpr void set(Word* words, std::uint32_t words_of_span) noexcept {
      first = words;
      words_per_span = words_of_span;
      skipped = 64 - words_of_span;
    }
    Word& operator[](pool::WordIndex index) const noexcept { return first[index - pool::span_of(index) * skipped]; }
  };
  // The storage that the word pools of the classes of one table share.
  struct Storage {
    ArenaSlots* slots;
    unsigned table;
    WordTable words{};
    Word& word(pool::WordIndex index) const noexcept { return words[index]; }
    Word& summary(SpanIndex span) const noexcept { return slots->spans_[span].summaries[table]; }
    auto& last_user(SpanIndex span) const noexcept { return slots->span_hints_[span].last_user; }
    bool belongs(SpanIndex span, unsigned tag) const noexcept { return slots->class_of_span(span).index() == tag; }
    // Slots smaller than a cache line: two threads that write to them in one line slow each other down for ever.
    bool is_left_to(pool::LastUser user, unsigned tag) const noexcept {
      return Classes::slot_bytes(SizeClass{tag}) < base::kCacheLine && !slots->thread_ids_.has_ended(user.thread()) &&
             slots->budget_.may_scatter();
    }
    // More than may stay free: searches have the time to find it.
    unsigned node_mask() const noexcept { return slots->node_mask(); }
    bool is_much_free() const noexcept { return !slots->budget_.may_scatter(); }
    // A span of no class: the claim that follows puts it into a tree.
    Tree* tree_of(SpanIndex span) const noexcept {
      const SizeClass c = slots->slot_class_of_span(span);
      return c.is_slot() ? &slots->pools_[c].tree() : nullptr;
    }
  };
  struct PoolConfig {
    using Storage = ArenaSlots::Storage;
    using Orders = typename Config::Orders;
  };
  using Pool = pool::WordPool<A, PoolConfig>;

  // The words of the trees over spans: stripe by stripe, each with a word of every class on separate lines, so that the
  // thread whose stripe it is shares lines and pages with few; behind them the sets of empties, one for each memory node, on
  // a line each where CPUs are many, and the set of drained.
  struct TreeWords {
    static constexpr std::size_t kLine = base::kCacheLine / sizeof(std::uint64_t);
    static constexpr std::size_t kStripe = base::align_up(Classes::kCount - 1, kLine);
    static constexpr unsigned kSets = ThreadIds<A>::kMostNodes;
    // The distance from one set of empties to the next.
    [[nodiscard]] static constexpr std::size_t set_words(unsigned stripes) noexcept {
      return std::clamp<std::size_t>(stripes / 4, kLine / kSets, kLine);
    }
    [[nodiscard]] static constexpr std::size_t stride(unsigned stripes) noexcept {
      return stripes * kStripe + kSets * set_words(stripes);
    }
  };
  // An eighth: a line of a span, where the engine has eight.
  static constexpr unsigned kFewWords = std::max(Config::kWordsPerSpan / 8, 1U);
  // The addresses of all this, zeroed.
  struct Tables {
    ClassByte* span_classes;
    Hints* hints;
    SpanType* spans;
    Word* words;
    Word* few_words;
    Word* tree_words;
  };

  constexpr ArenaSlots(Budget<A, Config>& budget, DueNote<A>& due, ArenaCounters<A>& counters) noexcept
      : budget_(budget), due_(due), counters_(counters) {}

  // Not thread-safe.
  void attach(const Tables& tables, std::uintptr_t base, std::size_t spans, unsigned stripes) noexcept {
    span_class_ = tables.span_classes;
    span_hints_ = tables.hints;
    spans_ = tables.spans;
    storages_[0].words.set(tables.words, Config::kWordsPerSpan);
    storages_[1].words.set(tables.few_words, kFewWords);
    const std::size_t stride = TreeWords::stride(stripes);
    Word* const words = tables.tree_words;
    Word* const sets = words + stripes * TreeWords::kStripe;
    empties_.attach(sets, stride, spans, TreeWords::set_words(stripes));
    drained_.attach(sets + 1, stride, spans);
    for (const SizeClass c : AllClasses<Classes>{}) {
      const auto bytes = static_cast<std::uint32_t>(Classes::slot_bytes(c));
      geometry_[c] = pool::SlotGeometry::of(base, Units::kSpanShift, bytes);
      pools_[c].attach(&storages_[table_of(c)], c.index(), {static_cast<std::uint32_t>(Units::kSpanBytes / bytes)},
                       words + c.index() - 1, stride, spans, stripes, TreeWords::kStripe);
    }
  }

  // --- look-ups ------------------------------------------------------------------------------------------------------

  [[nodiscard]] Pool& pool(SizeClass c) noexcept { return pools_[c]; }
  [[nodiscard]] const pool::SlotGeometry& geometry(SizeClass c) const noexcept { return geometry_[c]; }
  [[nodiscard]] const ClassByte* span_classes() const noexcept { return span_class_; }
  [[nodiscard]] SpanType& span(SpanIndex i) noexcept { return spans_[i]; }
  [[nodiscard]] const WordTable& words_of(SizeClass c) const noexcept { return storages_[table_of(c)].words; }
  [[nodiscard]] const auto& storages() const noexcept { return storages_; }
  // Acquire: pairs with kSetClass in add_span().
  [[nodiscard]] SizeClass class_of_span(SpanIndex i) const noexcept {
    return SizeClass{span_class_[i].load(std::memory_order_acquire)};
  }
  // The same where the span may be one of a private heap by now: that has none.
  [[nodiscard]] SizeClass slot_class_of_span(SpanIndex i) const noexcept {
    const SizeClass c = class_of_span(i);
    return c.index() < Classes::kCount ? c : SizeClass{};
  }
  // A run of one span holds blocks of a private heap from now on, or does no longer. Pre: the run is the caller's. Relaxed:
  // a block is handed out, and its span given back, later.
  void set_of_heap(SpanIndex i, bool is_of_heap) noexcept {
    span_class_[i].store(static_cast<std::uint8_t>(is_of_heap ? Classes::kCount : 0), std::memory_order_relaxed);
  }
  // The class of a span that has just left a set of spans; 0: none.
  [[nodiscard]] SizeClass class_after_leaving(SpanIndex i) const noexcept {
    const SizeClass c{span_class_[i].load(Config::SpanOrders::kAskClass)};
    return c.index() < Classes::kCount ? c : SizeClass{};
  }
  [[nodiscard]] constexpr ThreadIds<A>& thread_ids() noexcept { return thread_ids_; }

  // --- slots ---------------------------------------------------------------------------------------------------------

  // Takes up to `want` slots of class `c` of one word, where WordPool::find() finds some under these terms. bits == 0: none.
  [[nodiscard]] pool::Taken take_slots(SizeClass c, pool::Cursor& cursor, unsigned want, std::uint32_t thread_id,
                                       unsigned max_foreign_spans) noexcept {
    for (;;) {
      const pool::Taken taken = pools_[c].find(cursor, want, thread_id, max_foreign_spans);
      if (taken.bits == 0) return taken;
      // We hold slots, so the span's class does not change any more.
      if (class_of_span(pool::span_of(taken.word)) == c) [[likely]] {
        pools_[c].settle(cursor, taken.word, thread_id);
        note_taken(pool::span_of(taken.word));
        return taken;
      }
      put_back(taken.word, taken.bits);
    }
  }
  // The same where the cursor stands, in line: what most calls find. bits == 0: look further.
  [[nodiscard, gnu::always_inline]] pool::Taken take_slots_at_home(SizeClass c, pool::Cursor& cursor, unsigned want,
                                                                   std::uint32_t thread_id) noexcept {
    const pool::Taken taken = pools_[c].find_at_home(cursor, want, thread_id);
    if (taken.bits == 0) return taken;
    const SpanIndex span = pool::span_of(taken.word);
    if (class_of_span(span) != c) [[unlikely]] {  // as in take_slots()
      put_back(taken.word, taken.bits);
      return {};
    }
    pools_[c].settle(cursor, taken.word, thread_id);
    // A word that was taken whole is empty: the next search begins behind it.
    if (want >= 64) cursor.word = pool::word_index(span, (pool::word_in_span(taken.word) + 1) & 63);
    note_taken(span);
    return taken;
  }
  // Gives slots of class `c` back. Returns those of them that were free already; then nothing was changed.
  [[nodiscard]] std::uint64_t give_slots(SizeClass c, const pool::Taken& slots) noexcept {
    const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(slots.word));
    const std::uint64_t twice = give_word(c, slots.word, slots.bits, full, words_of(c)[slots.word]);
    const SpanIndex span = pool::span_of(slots.word);
    if (twice == 0 && !is_noted_as_drained(span_hints_[span])) add_drained(span);
    return twice;
  }
  // The same for n <= kMaxBatch addresses; `last` becomes the word of the last one. Reports misuse. Returns how many of
  // them lie in spans that another thread than `thread_id` used last; 0 where they are not counted.
  std::uint32_t give_slots(SizeClass c, void* const* slots, std::size_t n, pool::WordIndex& last,
                           std::uint32_t thread_id) noexcept {
    pool::SlotGroups groups;
    pool::group_slots(geometry_[c], slots, n, groups);
    if (groups.misplaced != 0) [[unlikely]]
      base::fatal(base::HeapError::kInteriorPointer, reinterpret_cast<void*>(groups.misplaced));
    if (groups.repeated != 0) [[unlikely]]
      base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(groups.repeated));
    const std::size_t count = groups.count;
    if (count == 0) return 0;
    // The loops keep these in registers: the locked instructions would have them read again.
    const WordTable words = words_of(c);
    const Hints* const hints = span_hints_;
    const std::span<const pool::SlotGroup> all(groups.groups, count);
    // The lines are fetched for writing all at once: the locked instructions below would wait for each in turn.
    for (const auto& [index, bits] : all) base::prefetch_for_write(&words[index]);
    Pool& pool = pools_[c];
    const std::uint64_t last_full = pool.shape().full(pool.shape().words() - 1);
    const auto mine = pool::LastUser::active(thread_id);
    std::size_t remote_groups = 0;
    for (const auto [index, bits] : all) {
      const std::uint64_t old = pool.put(index, bits, words[index]);
      if ((old & bits) != 0) [[unlikely]] {
        report_twice(c, index, bits, old & bits);
        continue;
      }
      // The last word of a span may have fewer slots, which are the lowest bits of any.
      if (const std::uint64_t now = old | bits; (now & last_full) == last_full) [[unlikely]]
        if (now == pool.shape().full(pool::word_in_span(index))) note_full(c, index);
      const SpanIndex span = pool::span_of(index);
      if (!is_noted_as_drained(hints[span])) [[unlikely]]
        add_drained(span);
      remote_groups += is_used_by_others(hints[span], mine) ? 1 : 0;
    }
    last = groups.groups[count - 1].word;
    if (remote_groups == 0 || remote_groups == count) [[likely]]
      return remote_groups == 0 ? 0 : static_cast<std::uint32_t>(n);
    // Bits are counted only where it must be: without an instruction for it that takes longer than all of the above.
    std::uint32_t remote = 0;
    for (const auto& [index, bits] : all)
      if (is_used_by_others(hints[pool::span_of(index)], mine)) remote += static_cast<std::uint32_t>(std::popcount(bits));
    return remote;
  }
  // Puts slots back that were taken for a moment: from a span of an unexpected class, or to purge their pages. Concurrent
  // frees saw these slots as taken and did not report the span as empty, so we must.
  void put_back(pool::WordIndex index, std::uint64_t bits) noexcept {
    const SizeClass c = class_of_span(pool::span_of(index));
    const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(index));
    (void)give_word(c, index, bits, full, words_of(c)[index]);
  }
  // Takes up to `most` free slots of a word that begin on the first of the pages [from, end) of span i of class c with any.
  [[nodiscard]] pool::Taken take_lowest(SpanIndex i, SizeClass c, std::size_t from, std::size_t end,
                                        unsigned most) noexcept {
    Pool& pool = pools_[c];
    const auto shape = pool.shape();
    const std::size_t bytes = Classes::slot_bytes(c);
    const auto first_on = [&](std::size_t page) {
      return std::min(shape.slots, static_cast<std::uint32_t>(base::ceil_div(page * Config::page_bytes(), bytes)));
    };
    if (spans_[i].summaries[table_of(c)].load(std::memory_order_relaxed) == 0) return {};  // relaxed: a hint
    const std::uint32_t first = first_on(from), last = first_on(end);
    for (unsigned w = first / 64; w * 64 < last; ++w) {
      std::uint64_t bits =
          words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed) & pool::bits_of_word(w, first, last);
      if (bits == 0) continue;
      const std::uint32_t slot = w * 64 + base::lowest_bit(bits);
      bits &= pool::bits_of_word(w, slot, first_on(slot * bytes / Config::page_bytes() + 1));
      while (static_cast<unsigned>(std::popcount(bits)) > most) bits &= bits - 1;
      const pool::WordIndex index = pool::word_index(i, w);
      if (!pool.take_exactly(index, bits)) continue;
      if (class_of_span(i) != c) {
        put_back(index, bits);
        return {};
      }
      // We hold slots, so the span's class does not change any more. The pages are wanted for less memory in all: no regret.
      if (spans_[i].page_hints.load(std::memory_order_relaxed) != 0) drop_hints(i, false);
      return {index, bits};
    }
    return {};
  }
  // Slots of a span were handed out: drops the hints about its pages.
  void note_taken(SpanIndex i) noexcept {
    if (spans_[i].page_hints.load(std::memory_order_relaxed) != 0) [[unlikely]]
      drop_hints(i, true);
  }

  // --- spans of classes ----------------------------------------------------------------------------------------------

  // The thread will be the span's last user.
  void set_user(SpanIndex i, std::uint32_t thread_id) noexcept {
    span_hints_[i].last_user.store(pool::LastUser::active(thread_id).value, std::memory_order_relaxed);
  }
  // The caller will be the first to touch the span's pages.
  void set_home(SpanIndex i) noexcept {
    const unsigned node = node_of_caller<Config>();
    if (node != 0 || node_mask() != 0) spans_[i].home.store(node, std::memory_order_relaxed);
  }
  // The caller's span becomes one of class `c`, and the caller gets `keep` of its slots (at most 64).
  [[nodiscard]] pool::Taken add_span(SpanIndex i, SizeClass c, unsigned keep) noexcept {
    counters_.span_claims.fetch_add(1, std::memory_order_relaxed);
    budget_.class_spans(Units::kSpanBytes);
    span_class_[i].store(static_cast<std::uint8_t>(c.index()), Config::SpanOrders::kSetClass);
    return pools_[c].publish(i, keep);
  }
  // Takes one wholly free span back from its class; the span is the caller's. The caller's node comes first; another
  // node's span is taken while much is free, or if `any` will do.
  [[nodiscard]] SpanIndex reclaim_empty_span(bool any) noexcept {
    const unsigned node_mask = this->node_mask(), node = node_mask == 0 ? 0 : node_of_caller<Config>();
    for (unsigned other = 0; other <= node_mask; ++other) {
      if (other == 1 && !any && budget_.may_scatter()) break;
      for (SpanIndex i = 0; (i = empties_.find(i, (node ^ other) & node_mask)) != kNoSpan; ++i)
        if (leave_empties(i)) return i;
    }
    return kNoSpan;
  }
  // The first span at or after `from` that is in the set of any node; kNoSpan: none is.
  [[nodiscard]] SpanIndex find_empty(SpanIndex from) noexcept {
    SpanIndex first = empties_.find(from);
    for (unsigned set = node_mask(); set != 0; --set) first = std::min(first, empties_.find(from, set));
    return first;
  }
  // Takes a span out of the sets. Returns whether it is the caller's now, of no class.
  [[nodiscard]] bool leave_empties(SpanIndex i) noexcept {
    for (unsigned set = node_mask(); set != 0; --set)
      if (empties_.test(i, set)) empties_.retire(i, [] { return false; }, set);
    empties_.retire(i, [] { return false; });
    const SizeClass c = class_after_leaving(i);
    return c.is_slot() && reclaim_span(i, c);
  }

  // --- for looks at spans --------------------------------------------------------------------------------------------

  [[nodiscard]] Tree& drained() noexcept { return drained_; }
  // Call this before a look at the span's pages. A free that finds the word set relies on this look or a later one, so the
  // word is cleared after the bit and before the look.
  void retire_drained(SpanIndex i) noexcept {
    drained_.retire(i, [] { return false; });
    span_hints_[i].is_drained.store(0, std::memory_order_seq_cst);
  }
  // One bit for each page of span `i` on which all slots look free.
  [[nodiscard]] std::uint32_t free_pages_of(SpanIndex i, SizeClass c) noexcept {
    const auto shape = pools_[c].shape();
    const std::size_t bytes = Classes::slot_bytes(c);
    std::uint32_t pages = 0;
    for (unsigned p = 0; p < Units::pages_per_span(); ++p) {
      const auto [from, end] = slots_on_pages<Config>(shape.slots, bytes, p, p + 1);
      bool free = from < end;
      for (unsigned w = from / 64; free && w <= (end - 1) / 64; ++w) {
        const std::uint64_t bits = pool::bits_of_word(w, from, end);
        free = (words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed) & bits) == bits;
      }
      if (free) pages |= 1U << p;
    }
    return pages;
  }

  // --- for statistics and tests --------------------------------------------------------------------------------------

  // Tells readers outside the process where the spans of the size classes are.
  void add_live_classes(LiveClasses& to) const noexcept {
    static_assert(Classes::kCount <= kMostLiveClasses);
    const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
    to.span_classes = address(span_class_);
    for (const Storage& storage : storages_) {
      auto& [words, stride] = to.tables[&storage - storages_];
      words = address(storage.words.first);
      stride = storage.words.words_per_span * sizeof(Word);
    }
    to.few_words_from = kFewWordsFrom;
    to.span_bytes = Units::kSpanBytes;
    to.count = Classes::kCount;
    for (const SizeClass c : AllClasses<Classes>{})
      to.slot_bytes[c.index()] = static_cast<std::uint32_t>(Classes::slot_bytes(c));
  }
  // The invariants for a span of class c, or of none.
  [[nodiscard]] bool check_span(SpanIndex i, SizeClass c) noexcept {
    if (span_hints_[i].is_drained.load(std::memory_order_relaxed) != 0 && !drained_.check_path(i)) return false;
    return !c.is_slot() || (pools_[c].check_span(i) && (!pools_[c].looks_full(i) || is_found_empty(i)));
  }

 private:
  static constexpr std::uint32_t kFewWordsFrom = Units::kSpanBytes / (64 * kFewWords);  // bytes of a slot
  [[nodiscard]] static constexpr unsigned table_of(SizeClass c) noexcept {
    return Classes::slot_bytes(c) >= kFewWordsFrom ? 1 : 0;
  }
  // A statistic of a hint, which decides nothing: the simulated machine leaves it out, and explores the rest further.
  // `mine`: as the last user of a span that the caller uses. A span of a class was always used by somebody.
  [[nodiscard]] static bool is_used_by_others(const Hints& hints, pool::LastUser mine) noexcept {
    if constexpr (requires { Config::kCountsRemoteFrees; })
      return (hints.last_user.load(std::memory_order_relaxed) | 1) != mine.value;
    else
      return false;
  }
  // One add for each look. seq_cst: ordered after the put of the slots, which those see who look after retire_drained().
  [[nodiscard]] static bool is_noted_as_drained(const Hints& hints) noexcept {
    return hints.is_drained.load(std::memory_order_seq_cst) != 0;
  }
  // Returns the bits that were set already; then nothing was changed.
  [[nodiscard]] std::uint64_t give_word(SizeClass c, pool::WordIndex index, std::uint64_t bits, std::uint64_t full,
                                        Word& word) noexcept {
    const std::uint64_t old = pools_[c].put(index, bits, word);
    if ((old & bits) != 0) [[unlikely]]
      return old & bits;
    if ((old | bits) == full) note_full(c, index);
    return 0;
  }
  // Slots `twice` of a group were free already; a test's handler may return, and the others are innocent.
  [[gnu::cold, gnu::noinline]] void report_twice(SizeClass c, pool::WordIndex index, std::uint64_t bits,
                                                 std::uint64_t twice) noexcept {
    base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(geometry_[c].address(index, base::lowest_bit(twice))));
    const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(index));
    (void)give_word(c, index, bits & ~twice, full, words_of(c)[index]);
  }
  [[nodiscard]] unsigned node_mask() const noexcept {
    if constexpr (requires { Config::node(); })
      return thread_ids_.node_mask();
    else
      return 0;
  }
  // The set that a wholly free span stands in is that of its home: the threads there get it back.
  [[nodiscard]] unsigned set_of(SpanIndex i) const noexcept {
    const unsigned node_mask = this->node_mask();
    return node_mask == 0 ? 0 : spans_[i].home.load(std::memory_order_relaxed) & node_mask;
  }
  [[nodiscard]] bool is_found_empty(SpanIndex i) const noexcept {
    for (unsigned set = 0; set <= node_mask(); ++set)
      if (empties_.check_path(i, set)) return true;
    return false;
  }
  // A word became full: its span may be wholly free. One bit set, once per span that empties.
  void note_full(SizeClass c, pool::WordIndex index) noexcept {
    const SpanIndex span = pool::span_of(index);
    const unsigned set = set_of(span);
    if (!empties_.test(span, set) && pools_[c].looks_full(span, pool::word_in_span(index))) {
      empties_.set(span, set);
      budget_.not_stuck(Units::kSpanBytes);
      due_.note();
    }
  }
  // Slots of a span were given back: its pages are worth a look. The word is set after the set's bit, and again if a look
  // took that away before.
  [[gnu::noinline]] void add_drained(SpanIndex i) noexcept {
    do {
      drained_.set(i);
      span_hints_[i].is_drained.store(1, std::memory_order_seq_cst);
    } while (!drained_.test(i));
    due_.note();
  }
  // Slots were handed out (`wanted`) or the span changes hands: all of its pages count as resident.
  [[gnu::noinline]] void drop_hints(SpanIndex i, bool wanted) noexcept {
    const std::uint64_t old = spans_[i].page_hints.exchange(0, std::memory_order_relaxed);  // relaxed: hints
    const auto bytes =
        static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(old & PageHints::kReturned)) * Config::page_bytes());
    if (bytes == 0) return;
    budget_.pages_returned(-bytes);
    // The clock of the last tick is good enough here.
    const std::uint64_t now = due_.next_tick();
    if (wanted && Budget<A, Config>::is_soon(static_cast<std::uint32_t>(due_.swept_at()), now)) budget_.regret(bytes, now);
  }
  // Takes every slot of span `i` of class `c`; the span is the caller's then, of no class. The class is asked again while we
  // hold slots: until then the span may have changed hands.
  [[nodiscard]] bool reclaim_span(SpanIndex i, SizeClass c) noexcept {
    Pool& pool = pools_[c];
    if (!pool.take_all(i)) {
      // A missing word may have come back while we held others; the thread that brought it did not see a free span. And the
      // span may be another class's by now.
      if (const SizeClass now_c = slot_class_of_span(i); now_c.is_slot() && pools_[now_c].looks_full(i))
        empties_.set(i, set_of(i));
      return false;
    }
    if (class_of_span(i) != c) [[unlikely]] {
      for (unsigned w = 0; w < pool.shape().words(); ++w) put_back(pool::word_index(i, w), pool.shape().full(w));
      return false;
    }
    span_class_[i].store(0,
                         std::memory_order_relaxed);  // relaxed: no thread holds a slot, so none asks; free spans publish it
    counters_.span_returns.fetch_add(1, std::memory_order_relaxed);
    drop_hints(i, false);
    budget_.class_spans(-static_cast<std::int64_t>(Units::kSpanBytes));
    return true;
  }
  // Read by every allocation and free, written by attach() only.
  ClassByte* span_class_ = nullptr;
  Hints* span_hints_ = nullptr;
  SpanType* spans_ = nullptr;
  Budget<A, Config>& budget_;
  DueNote<A>& due_;
  ArenaCounters<A>& counters_;
  Storage storages_[2] = {{this, 0}, {this, 1}};
  PerClass<Pool, Classes::kCount> pools_;
  PerClass<pool::SlotGeometry, Classes::kCount> geometry_;
  Tree empties_;  // spans that looked wholly free, in sets by node
  Tree drained_;  // spans in which slots became free since their pages were looked at
  alignas(base::kCacheLine) ThreadIds<A> thread_ids_;
};

}  // namespace freehold::alloc
