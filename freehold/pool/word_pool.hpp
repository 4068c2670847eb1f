// The core of every size class and of BestPool: free slots as one bit each, in words of 64, in blocks of up to 64 words.
// Free memory has no owner: a thread takes what is left of a word at once (one exchange for up to 64 slots) and gives
// slots back grouped by word (one fetch_add for the group). A slot is never touched, so a cold one stays cold; there is
// no remote free, no backlog, no ABA. A block keeps a summary word (bit w: word w may be non-empty) and the pool a
// SummaryTree over its blocks.
//
//   Invariants: a bit is set in a word  <=>  the slot is free and in nobody's hands.
//               word w of block b non-zero, at rest  =>  bit w of summary(b) set, and b in a lane of its pool's tree.
//
// The tree has lanes, and a block is enlisted in the lane of the thread that worked in it last, so that threads find the
// memory they used before: what they free and allocate again stays in their caches. A bit in another lane does no harm,
// since a search that finds nothing in its own lane looks into all.
//
// Blocks may change hands between pools (the engine gives an empty span to another size class). A hint may therefore
// name a block of another pool; what was taken is verified against blocks.belongs() afterwards: whoever holds a bit
// pins the block, since only all bits together can be seized. A wrong take goes back through blocks.give_back().
//
// Linearisation: take at the exchange or CAS, put at the fetch_add, seize at its last exchange. Lock-free, any thread.
// Cost: take one atomic (plus one a stale summary), put one atomic (plus one a level for a word that was empty).
// Source: the successor of the one-bit pools S4/S5 of "Memory management, pools compared", from docs/design.md.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/summary_tree.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

// A word of a block: block * 64 + word.
using Leaf = std::uint32_t;
[[nodiscard]] constexpr std::uint32_t block_of(Leaf leaf) noexcept { return leaf >> 6; }
[[nodiscard]] constexpr unsigned word_of(Leaf leaf) noexcept { return leaf & 63; }
[[nodiscard]] constexpr Leaf leaf_of(std::uint32_t block, unsigned word) noexcept { return block << 6 | word; }

// The slots [from, end) of a block, as bits of its word `word`.
[[nodiscard]] constexpr std::uint64_t bits_of_word(unsigned word, std::uint32_t from, std::uint32_t end) noexcept {
  const std::uint32_t low = from > word * 64 ? from : word * 64, high = end < word * 64 + 64 ? end : word * 64 + 64;
  return base::low_bits(high - word * 64) & ~base::low_bits(low - word * 64);
}

// Slots of one word; bits == 0 means none.
struct Taken {
  Leaf leaf = 0;
  std::uint64_t bits = 0;
};

// Who works, or worked last, in a block: a courtesy, not ownership. Threads prefer blocks they have used before (whose slots
// are in their cache) and blocks that nobody has used, and take over another's when memory would grow otherwise.
struct Holder {
  std::uint32_t value = 0;  // name << 1 | at work; 0: nobody yet
  [[nodiscard]] static constexpr Holder at_work(std::uint32_t who) noexcept { return {who << 1 | 1}; }
  [[nodiscard]] static constexpr Holder gone(std::uint32_t who) noexcept { return {who << 1}; }
  [[nodiscard]] constexpr std::uint32_t name() const noexcept { return value >> 1; }
  [[nodiscard]] constexpr bool is_foreign(std::uint32_t who) const noexcept { return value != 0 && name() != who; }
  [[nodiscard]] constexpr bool is_at_work() const noexcept { return (value & 1) != 0; }
};

// Where a thread works: the word where it took or gave slots last, and the block that it holds.
struct Cursor {
  static constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};
  Leaf leaf = 0;
  std::uint32_t held = kNoBlock;
};

// How slots lie in a block; the last word may be partial.
struct BlockShape {
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
  // the searcher, who clears the summary bit and then reads the word again).
  static constexpr auto kPut = std::memory_order_seq_cst;
  static constexpr auto kClearSummary = std::memory_order_seq_cst;
  static constexpr auto kRereadWord = std::memory_order_seq_cst;
  static constexpr auto kReadSummary = std::memory_order_seq_cst;
  static constexpr auto kSetSummary = std::memory_order_seq_cst;
  // seq_cst: of two threads that complete the last two words of a block, one at least sees the other's (store buffering
  // with their puts), so that an empty block does not go unnoticed.
  static constexpr auto kLookFull = std::memory_order_seq_cst;
  // Release: the new owner's tag (blocks.belongs) is visible to whoever takes a published slot.
  static constexpr auto kPublish = std::memory_order_release;
};

// Config gives: Blocks (storage and ownership of blocks), Orders.
//   Blocks: Word& word(Leaf); Word& summary(block); atomic<uint32_t>& holder(block), a Holder's value; bool belongs(block,
//   tag);
//           void give_back(Leaf, bits); void enlist(block), which calls enlist() of the pool that the block belongs to now
template <sync::Atomics A, class Config>
class WordPool {
 public:
  using Word = typename A::template atomic<std::uint64_t>;
  using Blocks = typename Config::Blocks;
  using Orders = typename Config::Orders;

  constexpr WordPool() noexcept = default;

  // Not thread-safe. `tree_words` must be zeroed: SummaryTree::words_for(block_count) words of each of `lanes` (a power of
  // two, at most `stride`) lanes at `stride`.
  void attach(Blocks* blocks, unsigned tag, BlockShape shape, Word* tree_words, std::size_t stride, std::size_t block_count,
              unsigned lanes = 1) noexcept {
    blocks_ = blocks;
    tag_ = tag;
    shape_ = shape;
    lanes_ = lanes;
    tree_.attach(tree_words, stride, block_count);
  }

  [[nodiscard]] BlockShape shape() const noexcept { return shape_; }

  // Takes between 1 and `want` slots of one word, the lowest first; with 64, whatever the word holds by one exchange. Looks
  // first where `cursor` stands, which then follows. `who` (1 … 2^31 - 1) names the thread: its own blocks and fresh ones
  // come first; another's is taken over if more than `patience` of those were seen. bits == 0: nothing was found under these
  // terms, or the pool looks empty; a put that is under way may be missed.
  [[nodiscard]] Taken take(Cursor& cursor, unsigned want, std::uint32_t who, unsigned patience) noexcept {
    const std::uint32_t home = block_of(cursor.leaf);
    if (blocks_->belongs(home, tag_) && (patience == 0 || !holder_of(home).is_foreign(who)))
      if (const Taken t = take_in_block(home, word_of(cursor.leaf), want); t.bits != 0) return settle(cursor, t, who);
    let_go(cursor, who);
    Foreign foreign{.most = std::clamp(patience + 1, kForeignLook, kMostForeignLook)};
    for (unsigned i = 0; i < lanes_ && foreign.seen < foreign.most; ++i) {
      const unsigned lane = (who + i) & (lanes_ - 1);
      if (i != 0 && tree_.looks_empty(lane)) continue;
      if (const Taken t = take_in_lane(lane, i == 0 ? home : 0, want, who, patience, foreign); t.bits != 0)
        return settle(cursor, t, who);
    }
    // As many as a search looks at are enough for the most patient: else memory would grow beside them for ever.
    const std::uint32_t found = foreign.best();
    if (found == Cursor::kNoBlock || (foreign.seen <= patience && foreign.seen < foreign.most)) return {};
    if (const Taken t = take_found(found, want); t.bits != 0) return settle(cursor, t, who);
    return take(cursor, want, who, 0);
  }

  // Makes `block` the one that `who` holds.
  void hold(Cursor& cursor, std::uint32_t block, std::uint32_t who) noexcept {
    if (cursor.held == block) return;
    let_go(cursor, who);
    cursor.held = block;
    blocks_->holder(block).store(Holder::at_work(who).value, std::memory_order_relaxed);  // relaxed: a hint
  }
  // Ends holding. The block may belong to another class by now; then its holder is another.
  void let_go(Cursor& cursor, std::uint32_t who) noexcept {
    if (cursor.held == Cursor::kNoBlock) return;
    auto& holder = blocks_->holder(cursor.held);
    if (holder.load(std::memory_order_relaxed) == Holder::at_work(who).value)
      holder.store(Holder::gone(who).value, std::memory_order_relaxed);
    cursor.held = Cursor::kNoBlock;
  }

  // Gives the slots `bits` of a word back. Returns the word's former value; if it shares a bit with `bits`, a slot was
  // free already, and nothing was changed (a second release that races with the first is seen but not undone).
  [[nodiscard]] std::uint64_t put(Leaf leaf, std::uint64_t bits) noexcept { return put(leaf, bits, blocks_->word(leaf)); }
  // The same for a caller who knows the word's place.
  [[nodiscard]] std::uint64_t put(Leaf leaf, std::uint64_t bits, Word& word) noexcept {
    // Relaxed: only a double release is looked for, and fetch_add looks again.
    if (const std::uint64_t seen = word.load(std::memory_order_relaxed); (seen & bits) != 0) [[unlikely]]
      return seen;
    // The bits are clear, so adding sets them: fetch_add is one instruction where fetch_or with a result is a CAS loop.
    const std::uint64_t old = word.fetch_add(bits, Orders::kPut);
    if (old == 0) announce(leaf);
    return old;
  }

  // Takes every slot of `block` or none. True: the caller alone holds the block, whose words are all zero.
  // Expects the block to belong to this pool; spurious failure when a searcher is passing through.
  [[nodiscard]] bool seize(std::uint32_t block) noexcept {
    if (!looks_full(block)) return false;
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t got = blocks_->word(leaf_of(block, w)).exchange(0, Orders::kTake);
      if (got == shape_.full(w)) continue;
      if (got != 0) (void)put(leaf_of(block, w), got);
      while (w-- > 0) (void)put(leaf_of(block, w), shape_.full(w));
      return false;
    }
    return true;
  }

  // Whether all slots of `block` look free. Looks first at the words on the cache line of `near`, which the caller has just
  // written: frees come in order more often than not, and the answer is mostly there, without another miss.
  [[nodiscard]] bool looks_full(std::uint32_t block, unsigned near = 0) const noexcept {
    const unsigned n = shape_.words();
    const unsigned line = near & ~(kWordsPerLine - 1);
    for (unsigned i = 0, w = line; i < n; ++i, w = w + 1 == n ? 0 : w + 1)
      if (blocks_->word(leaf_of(block, w)).load(Orders::kLookFull) != shape_.full(w)) return false;
    return true;
  }

  // Makes the slots of a block that the caller holds alone available, but for the caller's own share: the first
  // `keep` slots of word 0 (keep <= 64), which it takes. The block must carry this pool's tag already.
  [[nodiscard]] Taken publish(std::uint32_t block, unsigned keep) noexcept {
    const std::uint64_t mine = shape_.full(0) & base::low_bits(keep);
    std::uint64_t summary = 0;
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t bits = w == 0 ? shape_.full(0) & ~mine : shape_.full(w);
      blocks_->word(leaf_of(block, w)).store(bits, Orders::kPublish);
      if (bits != 0) summary |= base::bit(w);
    }
    // Whoever still announces to a former pool of the block has set a bit that we see, or sees us and enlists it here.
    if ((blocks_->summary(block).fetch_or(summary, Orders::kSetSummary) | summary) != 0) enlist(block);
    return {leaf_of(block, 0), mine};
  }

  // Puts a block of this pool where searchers find it.
  void enlist(std::uint32_t block) noexcept { tree_.set(block, lane_of(block)); }

  // Free slots of `block` now; exact at rest.
  [[nodiscard]] std::uint32_t free_slots(std::uint32_t block) const noexcept {
    std::uint32_t n = 0;
    for (unsigned w = 0; w < shape_.words(); ++w)
      n += static_cast<std::uint32_t>(std::popcount(blocks_->word(leaf_of(block, w)).load(std::memory_order_relaxed)));
    return n;
  }

  // Tries to take exactly `bits` of a word, all or nothing: for the purger, who needs whole pages.
  [[nodiscard]] bool take_exactly(Leaf leaf, std::uint64_t bits) noexcept {
    Word& word = blocks_->word(leaf);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while ((seen & bits) == bits)
      if (word.compare_exchange_weak(seen, seen & ~bits, Orders::kTake, std::memory_order_relaxed)) return true;
    return false;
  }

  // The invariant between word and summary of one block, and within the tree; call at rest.
  [[nodiscard]] bool check_block(std::uint32_t block) const noexcept {
    const std::uint64_t summary = blocks_->summary(block).load(std::memory_order_relaxed);
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const std::uint64_t bits = blocks_->word(leaf_of(block, w)).load(std::memory_order_relaxed);
      if ((bits & ~shape_.full(w)) != 0) return false;
      if (bits != 0 && ((summary & base::bit(w)) == 0 || !is_enlisted(block))) return false;
    }
    return true;
  }

 private:
  // Clearing stale summary bits costs the block's other users a miss each, reading a stale word costs us one.
  static constexpr int kStaleEnough = 16;
  static constexpr unsigned kWordsPerLine = base::kCacheLine / sizeof(std::uint64_t);

  // How many blocks of others a search looks at, each a walk of the tree and a line of holders: as many as the caller is
  // patient, within these. Fewer than that would make threads share blocks while CPUs are left.
  static constexpr unsigned kForeignLook = 8, kMostForeignLook = 64;

  // Blocks of others that a search passed: one whose holder has left it is better than one where somebody works.
  struct Foreign {
    unsigned most;  // a search ends there
    unsigned seen = 0;
    std::uint32_t left = Cursor::kNoBlock;
    std::uint32_t busy = Cursor::kNoBlock;

    [[nodiscard]] bool note(std::uint32_t block, Holder holder, std::uint32_t who) noexcept {
      if (!holder.is_foreign(who)) return false;
      ++seen;
      std::uint32_t& place = holder.is_at_work() ? busy : left;
      if (place == Cursor::kNoBlock) place = block;
      return true;
    }
    [[nodiscard]] std::uint32_t best() const noexcept { return left != Cursor::kNoBlock ? left : busy; }
  };

  [[nodiscard]] Holder holder_of(std::uint32_t block) const noexcept {
    return {blocks_->holder(block).load(std::memory_order_relaxed)};
  }

  [[nodiscard]] unsigned lane_of(std::uint32_t block) const noexcept { return holder_of(block).name() & (lanes_ - 1); }

  [[nodiscard]] bool is_enlisted(std::uint32_t block) const noexcept {
    for (unsigned lane = 0; lane < lanes_; ++lane)
      if (tree_.check_path(block, lane)) return true;
    return false;
  }

  [[nodiscard]] bool has_slots(std::uint32_t block) const noexcept {
    return blocks_->summary(block).load(Orders::kRereadWord) != 0 && blocks_->belongs(block, tag_);
  }

  [[nodiscard]] Taken take_found(std::uint32_t block, unsigned want) noexcept {
    return blocks_->belongs(block, tag_) ? take_in_block(block, 0, want) : Taken{};
  }

  // Searches one lane, from block `from` round; blocks with nothing leave it, blocks that moved to another lane go there.
  [[nodiscard]] Taken take_in_lane(unsigned lane, std::uint32_t from, unsigned want, std::uint32_t who, unsigned patience,
                                   Foreign& foreign) noexcept {
    const std::uint32_t start = from;
    for (bool wrapped = start == 0; foreign.seen < foreign.most;) {
      const std::uint32_t block = tree_.find(from, lane);
      if (block == SummaryTree<A>::kNone || (wrapped && start != 0 && block >= start)) {
        if (wrapped) return {};
        wrapped = true;
        from = 0;
        continue;
      }
      from = block + 1;
      if (const unsigned proper = lane_of(block); proper != lane && has_slots(block)) {
        // Before it leaves this lane: it is always in one. Others may move it, too, back to here or on, and rely on a bit
        // that is about to be cleared: so whoever has cleared one looks whether the other still stands.
        tree_.set(block, proper);
        tree_.retire(block, [&] { return has_slots(block) && !tree_.test(block, proper); }, lane);
        if (patience != 0) continue;  // else take what is at hand
      }
      if (patience != 0 && blocks_->belongs(block, tag_) && foreign.note(block, holder_of(block), who)) continue;
      if (const Taken t = take_found(block, want); t.bits != 0) return t;
      tree_.retire(block, [&] { return has_slots(block); }, lane);
    }
    return {};
  }

  [[nodiscard]] Taken settle(Cursor& cursor, Taken taken, std::uint32_t who) noexcept {
    cursor.leaf = taken.leaf;
    hold(cursor, block_of(taken.leaf), who);
    return taken;
  }

  [[nodiscard]] Taken take_in_block(std::uint32_t block, unsigned first, unsigned want) noexcept {
    Word& summary = blocks_->summary(block);
    const std::uint64_t candidates = summary.load(Orders::kReadSummary);
    std::uint64_t stale = 0;
    Taken taken;
    // From `first` upwards, then from the bottom: slots that were given back last are warm.
    for (std::uint64_t left = std::rotr(candidates, static_cast<int>(first)); left != 0; left &= left - 1) {
      const unsigned w = (first + base::lowest_bit(left)) & 63;
      taken = take_word(leaf_of(block, w), want);
      if (taken.bits != 0) break;
      stale |= base::bit(w);
    }
    if (stale != 0 && (taken.bits == 0 || std::popcount(stale) >= kStaleEnough)) clear_stale(block, summary, stale);
    if (taken.bits != 0 && !blocks_->belongs(block, tag_)) [[unlikely]] {
      blocks_->give_back(taken.leaf, taken.bits);
      return {};
    }
    return taken;
  }

  [[nodiscard]] Taken take_word(Leaf leaf, unsigned want) noexcept {
    Word& word = blocks_->word(leaf);
    std::uint64_t seen = word.load(std::memory_order_relaxed);  // relaxed: the exchange or CAS below decides
    while (seen != 0) {
      if (want >= 64) return {leaf, word.exchange(0, Orders::kTake)};
      std::uint64_t rest = seen;  // without its `want` lowest
      for (unsigned i = 0; i < want && rest != 0; ++i) rest &= rest - 1;
      if (word.compare_exchange_weak(seen, rest, Orders::kTake, std::memory_order_relaxed)) return {leaf, seen & ~rest};
    }
    return {};
  }

  // After a word became non-zero: its summary bit, then the block's. Whose block it is, is asked after the bit is set: we
  // hold no slot of it any more, so it may have gone to another pool, whose tree would miss it for ever.
  void announce(Leaf leaf) noexcept {
    Word& summary = blocks_->summary(block_of(leaf));
    if ((summary.load(Orders::kReadSummary) & base::bit(word_of(leaf))) != 0) return;
    summary.fetch_or(base::bit(word_of(leaf)), Orders::kSetSummary);
    blocks_->enlist(block_of(leaf));
  }

  // Clears summary bits over words that were seen empty, reads the words again, and restores the bits of those that
  // were not: the put whose announce() saw the bit before it was cleared relies on this.
  void clear_stale(std::uint32_t block, Word& summary, std::uint64_t stale) noexcept {
    summary.fetch_and(~stale, Orders::kClearSummary);
    for (; stale != 0; stale &= stale - 1) {
      const Leaf leaf = leaf_of(block, base::lowest_bit(stale));
      if (blocks_->word(leaf).load(Orders::kRereadWord) != 0) announce(leaf);
    }
  }

  Blocks* blocks_ = nullptr;
  SummaryTree<A> tree_;
  BlockShape shape_;
  unsigned tag_ = 0;
  unsigned lanes_ = 1;
};

}  // namespace freehold::pool
