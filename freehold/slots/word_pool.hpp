// SPDX-License-Identifier: MIT
// Free slots as one bit each, in words of 64, in spans of up to 64 words: what every size class of the engine and BestPool
// are made of. A thread takes what is left of a word at once (one exchange for up to 64 slots) and gives slots back grouped
// by word (one fetch_add for the group). Free slots belong to no thread, so there are no remote frees, no backlog and no
// ABA. The slots themselves are never touched.
//
//   Invariants: a bit is set in a word  <=>  the slot is free and no thread holds it.
//               word w of span s non-zero, at rest  =>  bit w of summary(s) set, and s in a stripe of its pool's tree.
//
// A span has a summary word (bit w: word w may be non-empty) and the pool a SummaryTree over its spans. The tree has
// stripes: a span stands in the stripe of the thread that used it last, so that threads find the memory that is in their
// caches. A bit in another stripe does no harm, since a search that finds nothing in its own stripe looks into all.
//
// Spans may change hands between pools: the engine gives an empty span to another size class (Arena). A hint may therefore
// name a span that belongs to another pool by now, and so may a search's result: find() leaves it to the caller to ask whose
// the span is. The answer holds while the caller has the slots, since only all slots together can be taken away.
//
// Linearisation: take at the exchange or CAS, put at the fetch_add, take_all at its last exchange. Lock-free, any thread.
// Cost: take one atomic (plus one a stale summary), put one atomic (plus one a level for a word that was empty).
// Source: the successor of the one-bit pools S4/S5 of "Memory management, pools compared", from docs/design.md.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

// A word of a span: span * 64 + word.
using WordIndex = std::uint32_t;
[[nodiscard]] constexpr std::uint32_t span_of(WordIndex index) noexcept { return index >> 6; }
[[nodiscard]] constexpr unsigned word_in_span(WordIndex index) noexcept { return index & 63; }
[[nodiscard]] constexpr WordIndex word_index(std::uint32_t span, unsigned word) noexcept { return span << 6 | word; }

// The slots [from, end) of a span, as bits of its word `word`.
[[nodiscard]] constexpr std::uint64_t bits_of_word(unsigned word, std::uint32_t from, std::uint32_t end) noexcept {
  const std::uint32_t low = from > word * 64 ? from : word * 64, high = end < word * 64 + 64 ? end : word * 64 + 64;
  return base::low_bits(high - word * 64) & ~base::low_bits(low - word * 64);
}

// Slots of one word; bits == 0 means none.
struct Taken {
  WordIndex word = 0;
  std::uint64_t bits = 0;
};

// Names the thread that uses a span, or used it last: a preference, not ownership. Threads prefer spans that they have used
// before (whose slots are in their caches) and spans that were never used; they take over another's when memory would grow
// otherwise.
struct LastUser {
  std::uint32_t value = 0;  // thread id << 1 | active; 0: not used yet
  [[nodiscard]] static constexpr LastUser active(std::uint32_t thread_id) noexcept { return {thread_id << 1 | 1}; }
  [[nodiscard]] static constexpr LastUser inactive(std::uint32_t thread_id) noexcept { return {thread_id << 1}; }
  [[nodiscard]] constexpr std::uint32_t thread() const noexcept { return value >> 1; }
  [[nodiscard]] constexpr bool is_foreign(std::uint32_t thread_id) const noexcept {
    return value != 0 && thread() != thread_id;
  }
  [[nodiscard]] constexpr bool is_active() const noexcept { return (value & 1) != 0; }
};

// Says where a thread works: the word where it took or gave slots last, and the span that it is marked as using.
struct Cursor {
  static constexpr std::uint32_t kNoSpan = ~std::uint32_t{0};
  WordIndex word = 0;
  std::uint32_t active_span = kNoSpan;
};

// How slots lie in a span; the last word may be partial.
struct SpanShape {
  std::uint32_t slots = 0;  // 1 … 4096
  [[nodiscard]] constexpr unsigned words() const noexcept { return (slots + 63) / 64; }
  [[nodiscard]] constexpr std::uint64_t full(unsigned word) const noexcept {
    const std::uint32_t left = slots - word * 64;
    return base::low_bits(left < 64 ? left : 64);
  }
};

// The memory orders of the algorithm, so that the model tests can weaken each in turn.
struct WordPoolOrders {
  // Acquire: pairs with the release half of put's fetch_add; the slot's former owner is done with it.
  static constexpr auto kTake = std::memory_order_acquire;
  // seq_cst: release for the slots' contents, and ordered against the summary's load that follows (store buffering with
  // the searcher, which clears the summary bit and then reads the word again).
  static constexpr auto kPut = std::memory_order_seq_cst;
  static constexpr auto kClearSummary = std::memory_order_seq_cst;
  static constexpr auto kRereadWord = std::memory_order_seq_cst;
  static constexpr auto kReadSummary = std::memory_order_seq_cst;
  static constexpr auto kSetSummary = std::memory_order_seq_cst;
  // seq_cst: of two threads that complete the last two words of a span, one at least sees the other's (store buffering
  // with their puts), so that an empty span does not go unnoticed.
  static constexpr auto kLookFull = std::memory_order_seq_cst;
  // Release: the new owner's tag (storage.belongs) is visible to the thread that takes a published slot.
  static constexpr auto kPublish = std::memory_order_release;
};

// Config gives: Storage, Orders.
//   Storage: Word& word(WordIndex); Word& summary(span); atomic<uint32_t>& last_user(span), a LastUser's value;
//            bool belongs(span, tag): to the pool of this tag, now;
//            unsigned node_mask(): the last bits of thread ids that stand for memory nodes; may be left out;
//            bool is_left_to(LastUser, tag): whether no other thread takes over the spans of this one, for now;
//            SummaryTree<A>* tree_of(span): of the pool that the span belongs to now; null: to none
// It is data that all pools over the same spans share, and calls none of them.
template <sync::Atomics A, class Config>
class WordPool {
 public:
  using Word = typename A::template atomic<std::uint64_t>;
  using Storage = typename Config::Storage;
  using Orders = typename Config::Orders;

  constexpr WordPool() noexcept = default;

  // Not thread-safe. `tree_words` must be zeroed: for a tree of `stripes` (a power of two) stripes, laid out as
  // SummaryTree::attach() says. Pools over the same storage have the same number of stripes.
  void attach(Storage* storage, unsigned tag, SpanShape shape, Word* tree_words, std::size_t stride, std::size_t span_count,
              unsigned stripes = 1, std::size_t stripe_words = 1) noexcept {
    storage_ = storage;
    tag_ = tag;
    shape_ = shape;
    stripes_ = stripes;
    tree_.attach(tree_words, stride, span_count, stripe_words);
  }

  [[nodiscard]] SpanShape shape() const noexcept { return shape_; }
  [[nodiscard]] SummaryTree<A>& tree() noexcept { return tree_; }

  // Takes between 1 and `want` slots of one word, the lowest first; with 64, whatever the word holds by one exchange. Looks
  // first where `cursor` stands, which then follows. `thread_id`: 1 … 2^31 - 1; the thread's own spans and fresh ones
  // come first; another's is taken over if more than `max_foreign_spans` of those were seen, and it is not left to that
  // thread; 0: any is. bits == 0: nothing was found under these terms, or the pool looks empty; a put that is under way may
  // be missed. Post: if the span still belongs to this pool, the caller calls settle(); else it puts the slots into the
  // other pool and may search again.
  [[nodiscard]] Taken find(Cursor& cursor, unsigned want, std::uint32_t thread_id, unsigned max_foreign_spans) noexcept {
    const std::uint32_t home = span_of(cursor.word);
    if (storage_->belongs(home, tag_) && (max_foreign_spans == 0 || !last_user_of(home).is_foreign(thread_id)))
      if (const Taken t = take_in_span(home, word_in_span(cursor.word), want); t.bits != 0) return t;
    clear_active(cursor, thread_id);
    Foreign foreign;
    // Its own stripe, then some of the others of its memory node: others each time, since a search that finds nothing is
    // followed by a new span, and so by another home.
    const unsigned node_mask = last_bits_of_nodes();
    unsigned looks = max_foreign_spans == 0 ? stripes_ : std::min(stripes_ / (node_mask + 1), 1 + kStripeLooks);
    const unsigned turn = home * 0x9e3779b9U >> 16;
    unsigned looked = 0;
    for (; foreign.seen < kForeignLook; ++looked) {
      if (looked == looks) {
        if (looks == stripes_ || !is_much_free()) break;
        looks = stripes_;  // else memory would grow beside what is free
      }
      const unsigned stripe = (thread_id + stripe_offset(looked, turn, node_mask)) & (stripes_ - 1);
      if (looked != 0 && tree_.looks_empty(stripe)) continue;
      if (const Taken t = take_in_stripe(stripe, looked == 0 ? home : 0, want, thread_id, max_foreign_spans, foreign);
          t.bits != 0)
        return t;
    }
    // The spans that were seen stand for all stripes. As many as a search looks at are enough, whatever the caller asks for:
    // else memory would grow beside them for ever.
    const auto [found, stripe] = foreign.best();
    if (found == Cursor::kNoSpan || (foreign.seen < kForeignLook && foreign.seen * stripes_ <= max_foreign_spans * looked))
      return {};
    if (const Taken t = take_found(found, want); t.bits != 0) return t;
    tree_.retire(found, [&, span = found] { return has_slots(span); }, stripe);
    return find(cursor, want, thread_id, max_foreign_spans);
  }
  // The first step of find(), in line: slots of the span where `cursor` stands, if another thread has not come there since.
  [[nodiscard, gnu::always_inline]] Taken find_at_home(const Cursor& cursor, unsigned want,
                                                       std::uint32_t thread_id) noexcept {
    const std::uint32_t home = span_of(cursor.word);
    if (!storage_->belongs(home, tag_) || last_user_of(home).is_foreign(thread_id)) [[unlikely]]
      return {};
    return take_in_span(home, word_in_span(cursor.word), want);
  }
  // The caller keeps slots of this word: it works there from now on.
  void settle(Cursor& cursor, WordIndex index, std::uint32_t thread_id) noexcept {
    cursor.word = index;
    mark_active(cursor, span_of(index), thread_id);
  }
  // Both, for a pool whose spans never change hands.
  [[nodiscard]] Taken take(Cursor& cursor, unsigned want, std::uint32_t thread_id, unsigned max_foreign_spans) noexcept {
    const Taken taken = find(cursor, want, thread_id, max_foreign_spans);
    if (taken.bits != 0) settle(cursor, taken.word, thread_id);
    return taken;
  }

  // Marks `span` as used by the thread; it can use one span of the pool at a time.
  void mark_active(Cursor& cursor, std::uint32_t span, std::uint32_t thread_id) noexcept {
    if (cursor.active_span == span) return;
    clear_active(cursor, thread_id);
    cursor.active_span = span;
    storage_->last_user(span).store(LastUser::active(thread_id).value, std::memory_order_relaxed);  // relaxed: a hint
  }
  // Ends that. The span may belong to another pool by now; then its last user is another.
  void clear_active(Cursor& cursor, std::uint32_t thread_id) noexcept {
    if (cursor.active_span == Cursor::kNoSpan) return;
    auto& last_user = storage_->last_user(cursor.active_span);
    if (last_user.load(std::memory_order_relaxed) == LastUser::active(thread_id).value)
      last_user.store(LastUser::inactive(thread_id).value, std::memory_order_relaxed);
    cursor.active_span = Cursor::kNoSpan;
  }

  // Gives the slots `bits` of a word back. Returns the word's former value; if it shares a bit with `bits`, a slot was
  // free already, and nothing was changed (a second release that races with the first is seen but not undone).
  [[nodiscard]] std::uint64_t put(WordIndex index, std::uint64_t bits) noexcept {
    return put(index, bits, storage_->word(index));
  }
  // The same for a caller that knows the word's place.
  [[nodiscard]] std::uint64_t put(WordIndex index, std::uint64_t bits, Word& word) noexcept {
    // Relaxed: only a double release is looked for, and fetch_add looks again.
    if (const std::uint64_t seen = word.load(std::memory_order_relaxed); (seen & bits) != 0) [[unlikely]]
      return seen;
    // The bits are clear, so adding sets them: fetch_add is one instruction where fetch_or with a result is a CAS loop.
    const std::uint64_t old = word.fetch_add(bits, Orders::kPut);
    if (old == 0) announce(index);
    return old;
  }

  // Takes every slot of `span` or none. True: the caller alone holds the span, whose words are all zero.
  // Expects the span to belong to this pool; spurious failure when a searcher is passing through.
  [[nodiscard]] bool take_all(std::uint32_t span) noexcept {
    if (!looks_full(span)) return false;
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t got = storage_->word(word_index(span, w)).exchange(0, Orders::kTake);
      if (got == shape_.full(w)) continue;
      if (got != 0) (void)put(word_index(span, w), got);
      while (w-- > 0) (void)put(word_index(span, w), shape_.full(w));
      return false;
    }
    return true;
  }

  // Returns whether all slots of `span` look free. Looks first at the words on the cache line of `near`, which the caller
  // has just written: frees come in order more often than not, and the answer is mostly there, without another miss.
  [[nodiscard]] bool looks_full(std::uint32_t span, unsigned near = 0) const noexcept {
    const Word* const words = &storage_->word(word_index(span, 0));
    const unsigned last = shape_.words() - 1;
    const unsigned line = near & ~(kWordsPerLine - 1);
    // Looks from the line on, then from the bottom; the last word may have fewer slots.
    for (unsigned w = line; w < last; ++w)
      if (words[w].load(Orders::kLookFull) != ~std::uint64_t{0}) return false;
    if (words[last].load(Orders::kLookFull) != shape_.full(last)) return false;
    for (unsigned w = 0; w < line; ++w)
      if (words[w].load(Orders::kLookFull) != ~std::uint64_t{0}) return false;
    return true;
  }

  // Makes the slots of a span that the caller holds alone available, except the caller's share: the first `keep` slots of
  // word 0 (keep <= 64), which it takes. The span must carry this pool's tag already.
  [[nodiscard]] Taken publish(std::uint32_t span, unsigned keep) noexcept {
    const std::uint64_t mine = shape_.full(0) & base::low_bits(keep);
    std::uint64_t summary = 0;
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t bits = w == 0 ? shape_.full(0) & ~mine : shape_.full(w);
      storage_->word(word_index(span, w)).store(bits, Orders::kPublish);
      if (bits != 0) summary |= base::bit(w);
    }
    // A thread that still announces a put to a former pool of the span has set a bit that we see, or sees us and sets the
    // bit in this pool's tree.
    if ((storage_->summary(span).fetch_or(summary, Orders::kSetSummary) | summary) != 0) tree_.set(span, stripe_of(span));
    return {word_index(span, 0), mine};
  }

  // Free slots of `span` now; exact at rest.
  [[nodiscard]] std::uint32_t free_slots(std::uint32_t span) const noexcept {
    std::uint32_t n = 0;
    for (unsigned w = 0; w < shape_.words(); ++w)
      n += static_cast<std::uint32_t>(std::popcount(storage_->word(word_index(span, w)).load(std::memory_order_relaxed)));
    return n;
  }

  // Tries to take exactly `bits` of a word, all or nothing: for the purger, which needs whole pages.
  [[nodiscard]] bool take_exactly(WordIndex index, std::uint64_t bits) noexcept {
    Word& word = storage_->word(index);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while ((seen & bits) == bits)
      if (word.compare_exchange_weak(seen, seen & ~bits, Orders::kTake, std::memory_order_relaxed)) return true;
    return false;
  }

  // The invariant between word and summary of one span, and within the tree; call at rest.
  [[nodiscard]] bool check_span(std::uint32_t span) const noexcept {
    const std::uint64_t summary = storage_->summary(span).load(std::memory_order_relaxed);
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t bits = storage_->word(word_index(span, w)).load(std::memory_order_relaxed);
      if ((bits & ~shape_.full(w)) != 0) return false;
      if (bits != 0 && ((summary & base::bit(w)) == 0 || !is_in_tree(span))) return false;
    }
    return true;
  }

 private:
  // The last bits of a thread's id that say on which memory node it is; 0: there is one.
  [[nodiscard]] unsigned last_bits_of_nodes() const noexcept {
    if constexpr (requires { storage_->node_mask(); })
      return storage_->node_mask() & (stripes_ - 1);
    else
      return 0;
  }
  // The distance from the thread's own stripe to the one that a search looks into as number `looked`: the stripes of its
  // node come first, from one that depends on `turn`, and then the others. The numbers below stripes_ lead to each stripe
  // once.
  [[nodiscard]] unsigned stripe_offset(unsigned looked, unsigned turn, unsigned node_mask) const noexcept {
    const unsigned nodes = node_mask + 1, of_node = stripes_ / nodes;
    if (looked == 0) return 0;
    if (looked < of_node) return nodes * (1 + (turn + looked) % (of_node - 1));
    const unsigned other = (turn + looked) % (stripes_ - of_node);
    return other / node_mask * nodes + 1 + other % node_mask;
  }
  [[nodiscard]] bool is_much_free() const noexcept {
    if constexpr (requires { storage_->is_much_free(); })
      return storage_->is_much_free();
    else
      return false;
  }

  // Clearing stale summary bits costs the span's other users a miss each, reading a stale word costs us one.
  static constexpr int kStaleEnough = 16;
  static constexpr unsigned kWordsPerLine = base::kCacheLine / sizeof(std::uint64_t);

  // How many stripes and spans of others a search looks at, each a walk of the tree and a line of last users: the same
  // number on a machine of any size. Fewer would make threads share spans while CPUs are left.
  static constexpr unsigned kStripeLooks = 8, kForeignLook = 8;

  // Spans of others that a search passed, and the stripe where it met them: one that its last user has left is better than
  // one in use.
  struct Foreign {
    struct Place {
      std::uint32_t span = Cursor::kNoSpan;
      unsigned stripe = 0;
    };
    unsigned seen = 0;  // a search ends at kForeignLook
    Place left{}, busy{};
    [[nodiscard]] const Place& best() const noexcept { return left.span != Cursor::kNoSpan ? left : busy; }
  };

  // True if the span is used by another thread, and so passed for now.
  [[nodiscard]] bool pass_by(std::uint32_t span, unsigned stripe, std::uint32_t thread_id, Foreign& foreign) noexcept {
    const LastUser last_user = last_user_of(span);
    if (!storage_->belongs(span, tag_) || !last_user.is_foreign(thread_id)) return false;
    ++foreign.seen;
    auto& place = last_user.is_active() ? foreign.busy : foreign.left;
    if (place.span == Cursor::kNoSpan && !storage_->is_left_to(last_user, tag_)) place = {span, stripe};
    return true;
  }

  [[nodiscard]] LastUser last_user_of(std::uint32_t span) const noexcept {
    return {storage_->last_user(span).load(std::memory_order_relaxed)};
  }

  [[nodiscard]] unsigned stripe_of(std::uint32_t span) const noexcept {
    return last_user_of(span).thread() & (stripes_ - 1);
  }

  [[nodiscard]] bool is_in_tree(std::uint32_t span) const noexcept {
    for (unsigned stripe = 0; stripe < stripes_; ++stripe)
      if (tree_.check_path(span, stripe)) return true;
    return false;
  }

  [[nodiscard]] bool has_slots(std::uint32_t span) const noexcept {
    return storage_->summary(span).load(Orders::kRereadWord) != 0 && storage_->belongs(span, tag_);
  }

  [[nodiscard]] Taken take_found(std::uint32_t span, unsigned want) noexcept {
    return storage_->belongs(span, tag_) ? take_in_span(span, 0, want) : Taken{};
  }

  // Searches one stripe, from span `from` round; spans with nothing leave it, spans that moved to another stripe go there.
  [[nodiscard]] Taken take_in_stripe(unsigned stripe, std::uint32_t from, unsigned want, std::uint32_t thread_id,
                                     unsigned max_foreign_spans, Foreign& foreign) noexcept {
    const std::uint32_t start = from;
    for (bool wrapped = start == 0; foreign.seen < kForeignLook;) {
      const std::uint32_t span = tree_.find(from, stripe);
      if (span == SummaryTree<A>::kNone || (wrapped && start != 0 && span >= start)) {
        if (wrapped) return {};
        wrapped = true;
        from = 0;
        continue;
      }
      from = span + 1;
      if (const unsigned proper = stripe_of(span); proper != stripe && has_slots(span)) {
        // Enters the other stripe before it leaves this one: it is always in one. Others may move it, too, back to here or
        // on, and rely on a bit that is about to be cleared: so a thread that has cleared one looks whether the other still
        // stands.
        tree_.set(span, proper);
        tree_.retire(span, [&] { return has_slots(span) && !tree_.test(span, proper); }, stripe);
        if (max_foreign_spans != 0) continue;  // else take what is at hand
      }
      if (max_foreign_spans != 0 && pass_by(span, stripe, thread_id, foreign)) continue;
      if (const Taken t = take_found(span, want); t.bits != 0) return t;
      tree_.retire(span, [&] { return has_slots(span); }, stripe);
    }
    return {};
  }

  [[nodiscard, gnu::always_inline]] Taken take_in_span(std::uint32_t span, unsigned first, unsigned want) noexcept {
    Word& summary = storage_->summary(span);
    Word* const words = &storage_->word(word_index(span, 0));
    const std::uint64_t candidates = summary.load(Orders::kReadSummary);
    std::uint64_t stale = 0;
    int stale_words = 0;  // counted here, since std::popcount is a call on older processors
    Taken taken;
    // From `first` upwards, then from the bottom: slots that were given back last are warm.
    for (std::uint64_t left = std::rotr(candidates, static_cast<int>(first)); left != 0; left &= left - 1) {
      const unsigned w = (first + base::lowest_bit(left)) & 63;
      taken = {word_index(span, w), take_word(words[w], want)};
      if (taken.bits != 0) break;
      stale |= base::bit(w);
      ++stale_words;
    }
    if (stale_words != 0 && (taken.bits == 0 || stale_words >= kStaleEnough)) [[unlikely]]
      clear_stale(span, summary, stale);
    return taken;
  }

  [[nodiscard, gnu::always_inline]] static std::uint64_t take_word(Word& word, unsigned want) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);  // relaxed: the exchange or CAS below decides
    while (seen != 0) {
      if (want >= 64) return word.exchange(0, Orders::kTake);
      std::uint64_t rest = seen;  // without its `want` lowest
      for (unsigned i = 0; i < want && rest != 0; ++i) rest &= rest - 1;
      if (word.compare_exchange_weak(seen, rest, Orders::kTake, std::memory_order_relaxed)) return seen & ~rest;
    }
    return 0;
  }

  // After a word became non-zero: sets its bit in the summary, then the span's in the tree of the pool that it belongs to.
  // That is asked after the summary's bit is set: we hold no slot of the span any more, so it may have gone to another
  // pool, whose tree would miss it for ever.
  [[gnu::noinline]] void announce(WordIndex index) noexcept {
    Word& summary = storage_->summary(span_of(index));
    if ((summary.load(Orders::kReadSummary) & base::bit(word_in_span(index))) != 0) return;
    summary.fetch_or(base::bit(word_in_span(index)), Orders::kSetSummary);
    if (SummaryTree<A>* const tree = storage_->tree_of(span_of(index)); tree != nullptr)
      tree->set(span_of(index), stripe_of(span_of(index)));
  }

  // Clears summary bits over words that were seen empty, reads the words again, and restores the bits of those that
  // were not: the put whose announce() saw the bit before it was cleared relies on this.
  [[gnu::noinline]] void clear_stale(std::uint32_t span, Word& summary, std::uint64_t stale) noexcept {
    summary.fetch_and(~stale, Orders::kClearSummary);
    const Word* const words = &storage_->word(word_index(span, 0));
    for (; stale != 0; stale &= stale - 1)
      if (const unsigned w = base::lowest_bit(stale); words[w].load(Orders::kRereadWord) != 0) announce(word_index(span, w));
  }

  Storage* storage_ = nullptr;
  SummaryTree<A> tree_;
  SpanShape shape_;
  unsigned tag_ = 0;
  unsigned stripes_ = 1;
};

}  // namespace freehold::pool
