// SPDX-License-Identifier: MIT
// Storage for word pools in tests: a few spans, shared by two or more pools, as the spans of the arena are.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "freehold/slots/word_pool.hpp"

namespace freehold::test {

template <class A, class PoolOrders = pool::WordPoolOrders>
class TestSpans {
 public:
  struct Config {
    using Storage = TestSpans;
    using Orders = PoolOrders;
  };
  using Pool = pool::WordPool<A, Config>;
  using Word = typename A::template atomic<std::uint64_t>;

  // Pool number i + 1 has the shape shapes[i]; each has `stripes` stripes.
  TestSpans(std::uint32_t spans, const std::vector<pool::SpanShape>& shapes, unsigned stripes = 1, unsigned nodes = 1)
      : count_(spans),
        nodes_(nodes - 1),
        words_(std::make_unique<Word[]>(std::size_t{spans} * 64)),
        summaries_(std::make_unique<Word[]>(spans)),
        last_users_(std::make_unique<typename A::template atomic<std::uint32_t>[]>(spans)),
        owners_(std::make_unique<typename A::template atomic<std::uint8_t>[]>(spans)),
        trees_(std::make_unique<Word[]>(pool::SummaryTree<A>::words_for(spans) * shapes.size() * stripes)),
        pools_(std::make_unique<Pool[]>(shapes.size() + 1)) {
    for (std::size_t i = 0; i < shapes.size(); ++i)
      pools_[i + 1].attach(this, static_cast<unsigned>(i + 1), shapes[i], trees_.get() + i * stripes,
                           shapes.size() * stripes, spans, stripes);
  }

  Word& word(pool::WordIndex index) const { return words_[index]; }
  Word& summary(std::uint32_t span) const { return summaries_[span]; }
  auto& last_user(std::uint32_t span) const { return last_users_[span]; }
  bool belongs(std::uint32_t span, unsigned tag) const { return owners_[span].load(std::memory_order_acquire) == tag; }
  unsigned node_mask() const { return nodes_; }
  static bool is_left_to(pool::LastUser, unsigned) { return false; }
  pool::SummaryTree<A>* tree_of(std::uint32_t span) const {
    const unsigned tag = owners_[span].load(std::memory_order_acquire);
    return tag != 0 ? &pools_[tag].tree() : nullptr;
  }

  [[nodiscard]] Pool& pool(unsigned tag) { return pools_[tag]; }
  // As the arena takes slots: from a span that still belongs to the pool.
  [[nodiscard]] pool::Taken take(unsigned tag, pool::Cursor& cursor, unsigned want, std::uint32_t thread_id,
                                 unsigned max_foreign_spans) {
    for (;;) {
      const pool::Taken taken = pools_[tag].find(cursor, want, thread_id, max_foreign_spans);
      if (taken.bits == 0) return taken;
      if (belongs(pool::span_of(taken.word), tag)) {
        pools_[tag].settle(cursor, taken.word, thread_id);
        return taken;
      }
      (void)pools_[owners_[pool::span_of(taken.word)].load(std::memory_order_acquire)].put(taken.word, taken.bits);
    }
  }
  // Gives a span that no thread has to a pool.
  pool::Taken give(std::uint32_t span, unsigned tag, unsigned keep = 0) {
    owners_[span].store(static_cast<std::uint8_t>(tag), std::memory_order_release);
    return pools_[tag].publish(span, keep);
  }
  [[nodiscard]] bool check() {
    for (std::uint32_t b = 0; b < count_; ++b) {
      const unsigned tag = owners_[b].load(std::memory_order_relaxed);
      if (tag != 0 && !pools_[tag].check_span(b)) return false;
    }
    return true;
  }

 private:
  std::uint32_t count_;
  unsigned nodes_;  // less one
  std::unique_ptr<Word[]> words_, summaries_;
  std::unique_ptr<typename A::template atomic<std::uint32_t>[]> last_users_;
  std::unique_ptr<typename A::template atomic<std::uint8_t>[]> owners_;
  std::unique_ptr<Word[]> trees_;
  std::unique_ptr<Pool[]> pools_;
};

}  // namespace freehold::test
