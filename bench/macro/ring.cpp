// Producer to consumer: one thread allocates, another frees, through a ring with one writer and one reader. Publishing
// every 64 items measures the allocator; publishing each item measures the ring's cache misses as well. Producers and
// consumers sit on different CPUs where there are two.
#include <atomic>
#include <memory>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::size_t kSlots = 4096;
constexpr std::size_t kBytes = 12;
constexpr std::uint64_t kItems = 2'000'000;

class Ring {
 public:
  explicit Ring(std::size_t publish_every) : publish_every_(publish_every) {}

  void push(void* block) {
    while (tail_ - head_seen_ == kSlots) {
      publish();
      wait_until([&] { return tail_ - (head_seen_ = head_.load(std::memory_order_acquire)) < kSlots; });
    }
    slots_[tail_++ % kSlots] = block;
    if (tail_ % publish_every_ == 0) publish();
  }
  void publish() { published_.store(tail_, std::memory_order_release); }  // pairs with the acquire load in pop()

  void* pop() {
    if (head_local_ == tail_seen_)
      wait_until([&] { return (tail_seen_ = published_.load(std::memory_order_acquire)) != head_local_; });
    void* block = slots_[head_local_++ % kSlots];
    // release: pairs with the acquire load in push(); the slot may be written again
    if (head_local_ % publish_every_ == 0) head_.store(head_local_, std::memory_order_release);
    return block;
  }

 private:
  template <class Condition>
  static void wait_until(Condition condition) {
    for (unsigned spins = 0; !condition(); ++spins) {
      if (spins < 256)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();
    }
  }

  alignas(64) std::size_t tail_ = 0;  // the producer's
  std::size_t head_seen_ = 0;
  std::size_t publish_every_;
  alignas(64) std::size_t head_local_ = 0;  // the consumer's
  std::size_t tail_seen_ = 0;
  alignas(64) std::atomic<std::size_t> published_{0};
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) void* slots_[kSlots] = {};
};

template <unsigned kPairs, std::size_t kPublishEvery>
Outcome producer_consumer(double scale) {
  const auto items = scaled(scale, kItems / kPairs / 64) * 64;
  std::vector<std::unique_ptr<Ring>> rings;
  for (unsigned i = 0; i < kPairs; ++i) rings.push_back(std::make_unique<Ring>(kPublishEvery));
  std::vector<std::uint64_t> sums(kPairs);
  const double seconds = run_threads(2 * kPairs, pin_to_cpu, [&](unsigned t) {
    Ring& ring = *rings[t / 2];
    if (t % 2 == 0) {
      for (std::uint64_t i = 0; i < items; ++i) {
        auto* block = static_cast<std::uint64_t*>(must(std::malloc(kBytes)));
        *block = i;
        ring.push(block);
      }
      ring.publish();
    } else {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < items; ++i) {
        auto* block = static_cast<std::uint64_t*>(ring.pop());
        sum += *block;
        std::free(block);
      }
      sums[t / 2] = sum;
    }
  });
  for (auto sum : sums)
    if (sum != items * (items - 1) / 2) give_up("an item was lost or changed");
  return {kPairs * items, seconds, sums[0]};
}

constexpr Row kRows[] = {
    {"ring_64", "a producer and a consumer, published every 64", producer_consumer<1, 64>},
    {"ring_64_4pairs", "four producers and four consumers in pairs, published every 64", producer_consumer<4, 64>},
    {"ring_1", "a producer and a consumer, each item published", producer_consumer<1, 1>},
};

}  // namespace

Rows ring_rows() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace freehold::bench
