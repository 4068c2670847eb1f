// The core of every size class and of BestPool: free slots as one bit each, in words of 64, in blocks of up to 64 words.
// Free memory has no owner: a thread takes what is left of a word at once (one exchange for up to 64 slots) and gives
// slots back grouped by word (one fetch_add for the group). A slot is never touched, so a cold one stays cold; there is
// no remote free, no backlog, no ABA. A block keeps a summary word (bit w: word w may be non-empty) and the pool a
// SummaryTree over its blocks.
//
//   Invariants: a bit is set in a word  <=>  the slot is free and in nobody's hands.
//               word w of block b non-zero, at rest  =>  bit w of summary(b) set, and b in the tree of b's pool.
//
// Blocks may change hands between pools (the engine gives an empty span to another size class). A hint may therefore
// name a block of another pool; what was taken is verified against blocks.belongs() afterwards: whoever holds a bit
// pins the block, since only all bits together can be seized. A wrong take goes back through blocks.give_back().
//
// Linearisation: take at the exchange or CAS, put at the fetch_add, seize at its last exchange. Lock-free, any thread.
// Cost: take one atomic (plus one a stale summary), put one atomic (plus one a level for a word that was empty).
// Source: the successor of the one-bit pools S4/S5 of "Memory management, pools compared", from docs/design.md.
#pragma once
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

// Slots of one word; bits == 0 means none.
struct Taken {
  Leaf leaf = 0;
  std::uint64_t bits = 0;
};

// Where a thread works: the word where it took or gave slots last, and the block that it holds. Holding is a courtesy, not
// ownership: others prefer blocks that nobody holds, so that threads meet on a metadata line only when memory is short.
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
  // Release: the new owner's tag (blocks.belongs) is visible to whoever takes a published slot.
  static constexpr auto kPublish = std::memory_order_release;
};

// Config gives: Blocks (storage and ownership of blocks), Orders.
//   Blocks: Word& word(Leaf); Word& summary(block); Holder& holder(block); bool belongs(block, tag);
//           void give_back(Leaf, bits); void enlist(block), which calls enlist() of the pool that the block belongs to now
template <sync::Atomics A, class Config>
class WordPool {
 public:
  using Word = typename A::template atomic<std::uint64_t>;
  using Blocks = typename Config::Blocks;
  using Orders = typename Config::Orders;

  constexpr WordPool() noexcept = default;

  // Not thread-safe. `tree_words` must be zeroed: SummaryTree::words_for(block_count) words at `stride`.
  void attach(Blocks* blocks, unsigned tag, BlockShape shape, Word* tree_words, std::size_t stride,
              std::size_t block_count) noexcept {
    blocks_ = blocks;
    tag_ = tag;
    shape_ = shape;
    tree_.attach(tree_words, stride, block_count);
  }

  [[nodiscard]] BlockShape shape() const noexcept { return shape_; }

  // Takes between 1 and `want` slots of one word, the lowest first; with 64, whatever the word holds by one exchange. Looks
  // first where `cursor` stands, which then follows. `who` (not 0) names the thread. Blocks that others hold are passed
  // over unless there are more than `patience` of them. bits == 0: nothing was found under these terms, or the pool looks
  // empty; a put that is under way may be missed.
  [[nodiscard]] Taken take(Cursor& cursor, unsigned want, std::uint32_t who, unsigned patience) noexcept {
    const std::uint32_t home = block_of(cursor.leaf);
    if (blocks_->belongs(home, tag_) && (patience == 0 || free_for(home, who)))
      if (const Taken t = take_in_block(home, word_of(cursor.leaf), want); t.bits != 0) return settle(cursor, t, who);
    let_go(cursor, who);
    bool wrapped = false;
    for (std::uint32_t from = home;;) {
      const std::uint32_t block = tree_.find(from);
      if (block == SummaryTree<A>::kNone) {
        if (wrapped) return {};
        wrapped = true;
        from = 0;
        continue;
      }
      from = block + 1;
      if (blocks_->belongs(block, tag_)) {
        if (patience != 0 && !free_for(block, who)) {
          --patience;
          continue;
        }
        if (const Taken t = take_in_block(block, 0, want); t.bits != 0) return settle(cursor, t, who);
      }
      tree_.retire(block,
                   [&] { return blocks_->summary(block).load(Orders::kRereadWord) != 0 && blocks_->belongs(block, tag_); });
    }
  }

  // Makes `block` the one that `who` holds.
  void hold(Cursor& cursor, std::uint32_t block, std::uint32_t who) noexcept {
    if (cursor.held == block) return;
    let_go(cursor, who);
    cursor.held = block;
    blocks_->holder(block).store(who, std::memory_order_relaxed);  // relaxed: a hint
  }
  // Ends holding. The block may belong to another class by now; then its holder is another.
  void let_go(Cursor& cursor, std::uint32_t who) noexcept {
    if (cursor.held == Cursor::kNoBlock) return;
    auto& holder = blocks_->holder(cursor.held);
    if (holder.load(std::memory_order_relaxed) == who) holder.store(0, std::memory_order_relaxed);
    cursor.held = Cursor::kNoBlock;
  }

  // Gives the slots `bits` of a word back. Returns the word's former value; if it shares a bit with `bits`, a slot was
  // free already, and nothing was changed (a second release that races with the first is seen but not undone).
  [[nodiscard]] std::uint64_t put(Leaf leaf, std::uint64_t bits) noexcept {
    Word& word = blocks_->word(leaf);
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

  // Whether all slots of `block` look free; starts beside `near`, since frees come in order more often than not.
  [[nodiscard]] bool looks_full(std::uint32_t block, unsigned near = 0) const noexcept {
    const unsigned n = shape_.words();
    const auto full = [&](unsigned w) {
      return blocks_->word(leaf_of(block, w)).load(std::memory_order_relaxed) == shape_.full(w);  // relaxed: seize verifies
    };
    if (near > 0 && !full(near - 1)) return false;
    for (unsigned i = 1; i <= n; ++i)
      if (!full((near + i) % n)) return false;
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
    if ((blocks_->summary(block).fetch_or(summary, Orders::kSetSummary) | summary) != 0) tree_.set(block);
    return {leaf_of(block, 0), mine};
  }

  // Puts a block of this pool where searchers find it.
  void enlist(std::uint32_t block) noexcept { tree_.set(block); }

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
      if (bits != 0 && ((summary & base::bit(w)) == 0 || !tree_.test(block))) return false;
    }
    return tree_.check_invariants();
  }

 private:
  // Clearing stale summary bits costs the block's other users a miss each, reading a stale word costs us one.
  static constexpr int kStaleEnough = 16;

  [[nodiscard]] bool free_for(std::uint32_t block, std::uint32_t who) const noexcept {
    const std::uint32_t holder = blocks_->holder(block).load(std::memory_order_relaxed);
    return holder == 0 || holder == who;
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
    for (const std::uint64_t part : {candidates & ~base::low_bits(first), candidates & base::low_bits(first)}) {
      for (std::uint64_t bits = part; bits != 0 && taken.bits == 0; bits &= bits - 1) {
        const unsigned w = base::lowest_bit(bits);
        taken = take_word(leaf_of(block, w), want);
        if (taken.bits == 0) stale |= base::bit(w);
      }
      if (taken.bits != 0) break;
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
};

}  // namespace freehold::pool
