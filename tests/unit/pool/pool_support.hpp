// Storage for word pools in tests: a few blocks, shared by two or more pools, as the spans of the arena are.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "freehold/pool/word_pool.hpp"

namespace freehold::test {

template <class A, class PoolOrders = pool::WordPoolOrders>
class TestBlocks {
 public:
  struct Config {
    using Blocks = TestBlocks;
    using Orders = PoolOrders;
  };
  using Pool = pool::WordPool<A, Config>;
  using Word = typename A::template atomic<std::uint64_t>;

  // Pool number i + 1 has the shape shapes[i]; each has `lanes` lanes.
  TestBlocks(std::uint32_t blocks, const std::vector<pool::BlockShape>& shapes, unsigned lanes = 1)
      : count_(blocks),
        words_(std::make_unique<Word[]>(std::size_t{blocks} * 64)),
        summaries_(std::make_unique<Word[]>(blocks)),
        holders_(std::make_unique<typename A::template atomic<std::uint32_t>[]>(blocks)),
        owners_(std::make_unique<typename A::template atomic<std::uint8_t>[]>(blocks)),
        trees_(std::make_unique<Word[]>(pool::SummaryTree<A>::words_for(blocks) * shapes.size() * lanes)),
        pools_(std::make_unique<Pool[]>(shapes.size() + 1)) {
    for (std::size_t i = 0; i < shapes.size(); ++i)
      pools_[i + 1].attach(this, static_cast<unsigned>(i + 1), shapes[i], trees_.get() + i * lanes, shapes.size() * lanes,
                           blocks, lanes);
  }

  Word& word(pool::Leaf leaf) const { return words_[leaf]; }
  Word& summary(std::uint32_t block) const { return summaries_[block]; }
  auto& holder(std::uint32_t block) const { return holders_[block]; }
  // Word 0 of level 0 of a lane of pool 1, for hooks; for at most 64 blocks and one pool.
  Word& lane_word(unsigned lane) const { return trees_[lane]; }
  bool belongs(std::uint32_t block, unsigned tag) const { return owners_[block].load(std::memory_order_acquire) == tag; }
  void give_back(pool::Leaf leaf, std::uint64_t bits) {
    ++gave_back;
    (void)pools_[owners_[pool::block_of(leaf)].load(std::memory_order_acquire)].put(leaf, bits);
  }
  void enlist(std::uint32_t block) {
    if (const unsigned tag = owners_[block].load(std::memory_order_acquire); tag != 0) pools_[tag].enlist(block);
  }

  [[nodiscard]] Pool& pool(unsigned tag) { return pools_[tag]; }
  // Gives a block that nobody has to a pool.
  pool::Taken give(std::uint32_t block, unsigned tag, unsigned keep = 0) {
    owners_[block].store(static_cast<std::uint8_t>(tag), std::memory_order_release);
    return pools_[tag].publish(block, keep);
  }
  // Takes a wholly free block from its pool.
  bool take_away(std::uint32_t block) {
    if (!pools_[owners_[block].load(std::memory_order_relaxed)].seize(block)) return false;
    owners_[block].store(0, std::memory_order_relaxed);
    return true;
  }
  [[nodiscard]] bool check() {
    for (std::uint32_t b = 0; b < count_; ++b) {
      const unsigned tag = owners_[b].load(std::memory_order_relaxed);
      if (tag != 0 && !pools_[tag].check_block(b)) return false;
    }
    return true;
  }

  std::atomic<unsigned> gave_back{0};

 private:
  std::uint32_t count_;
  std::unique_ptr<Word[]> words_, summaries_;
  std::unique_ptr<typename A::template atomic<std::uint32_t>[]> holders_;
  std::unique_ptr<typename A::template atomic<std::uint8_t>[]> owners_;
  std::unique_ptr<Word[]> trees_;
  std::unique_ptr<Pool[]> pools_;
};

}  // namespace freehold::test
