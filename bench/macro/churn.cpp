// SPDX-License-Identifier: MIT
// Random sizes, blocks that cross threads, threads that come and go: our own programs after the ideas of the field's
// classic allocator benchmarks (larson, xmalloc-test, mstress, sh8bench). Every block carries a stamp in its first bytes
// that depends on its size; it is checked when the block is freed.
#include <atomic>
#include <condition_variable>
#include <deque>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::uint64_t kSecret = 0x5EED'F00D'0BAD'CAFEu;

struct Block {
  std::uint64_t* memory = nullptr;
  std::size_t bytes = 0;
};

// Writes the first 16 and the last 8 bytes. Pre: bytes >= 16.
Block make_block(std::size_t bytes) {
  auto* memory = static_cast<std::uint64_t*>(must(std::malloc(bytes)));
  memory[0] = bytes ^ kSecret;
  memory[bytes / 8 - 1] = bytes ^ kSecret;
  return {memory, bytes};
}

std::uint64_t drop_block(Block& block) {
  if (block.memory == nullptr) return 0;
  if (block.memory[0] != (block.bytes ^ kSecret)) give_up("a block was overwritten");
  std::free(block.memory);
  block.memory = nullptr;
  return 1;
}

std::uint64_t drop_all(std::vector<Block>& blocks) {
  std::uint64_t dropped = 0;
  for (auto& block : blocks) dropped += drop_block(block);
  return dropped;
}

// A server whose connections move between threads: each thread replaces random blocks of its set, then hands the set to
// a thread that it starts, and ends.
class Larson {
 public:
  explicit Larson(double scale) : replacements_(scaled(scale, 10'000)) {}

  Outcome run() {
    std::vector<std::vector<Block>> sets(kThreads, std::vector<Block>(kBlocks));
    const auto start = Clock::now();
    std::vector<std::thread> first;
    for (unsigned t = 0; t < kThreads; ++t) first.emplace_back([this, &sets, t] { generation(sets[t], t, 0); });
    for (auto& thread : first) thread.join();
    finished_.wait();
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    for (auto& set : sets) drop_all(set);
    return {kThreads * kGenerations * replacements_, elapsed.count(), dropped_.load()};
  }

 private:
  static constexpr unsigned kThreads = 8;
  static constexpr unsigned kGenerations = 40;
  static constexpr std::size_t kBlocks = 1000;

  void generation(std::vector<Block>& set, unsigned sequence, unsigned number) {
    Random random(sequence * 1000 + number + 1);
    std::uint64_t dropped = 0;
    for (std::uint64_t i = 0; i < replacements_; ++i) {
      Block& block = set[random.below(kBlocks)];
      dropped += drop_block(block);
      block = make_block(16 + random.below(985));
    }
    dropped_.fetch_add(dropped, std::memory_order_relaxed);  // read after all threads have ended
    if (number + 1 < kGenerations)
      std::thread([this, &set, sequence, number] { generation(set, sequence, number + 1); }).detach();
    else
      finished_.count_down();
  }

  std::uint64_t replacements_;
  std::atomic<std::uint64_t> dropped_{0};
  std::latch finished_{kThreads};
};

Outcome larson(double scale) { return Larson(scale).run(); }

// A bounded queue of batches between threads that only allocate and threads that only free.
class BatchQueue {
 public:
  using Batch = std::vector<Block>*;

  void put(Batch batch) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return batches_.size() < kMost; });
    batches_.push_back(batch);
    not_empty_.notify_one();
  }
  Batch take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !batches_.empty(); });
    Batch batch = batches_.front();
    batches_.pop_front();
    not_full_.notify_one();
    return batch;
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<Batch> batches_;
};

template <unsigned kAllocators, unsigned kFreers>
Outcome exchange(double scale) {
  static_assert(kAllocators == kFreers, "each freeing thread takes as many batches as an allocating thread makes");
  constexpr std::size_t kBatch = 512;
  const auto batches = scaled(scale, 8'000 / kAllocators);
  BatchQueue queue;
  std::vector<std::uint64_t> dropped(kFreers);
  auto allocating = [&](unsigned t) {
    Random random(t + 1);
    for (std::uint64_t i = 0; i < batches; ++i) {
      auto* batch = new std::vector<Block>;
      batch->reserve(kBatch);
      for (std::size_t n = 0; n < kBatch; ++n) batch->push_back(make_block(random.log_size(4, 9)));
      queue.put(batch);
    }
  };
  auto freeing = [&](unsigned t) {
    for (std::uint64_t i = 0; i < batches; ++i) {
      auto* batch = queue.take();
      dropped[t] += drop_all(*batch);
      delete batch;
    }
  };
  const double seconds =
      run_threads(kAllocators + kFreers, [&](unsigned t) { t < kAllocators ? allocating(t) : freeing(t - kAllocators); });
  const auto blocks = sum_of(dropped);
  if (blocks != kAllocators * batches * kBatch) give_up("a block was lost");
  return {blocks, seconds, blocks};
}

// Bursts of threads that keep some blocks to their end and swap others through slots shared by all, with an occasional
// large block.
class Stress {
 public:
  explicit Stress(double scale) : steps_(scaled(scale, 25'000)), shared_(kShared) {}

  Outcome run() {
    const auto start = Clock::now();
    for (unsigned burst = 0; burst < kBursts; ++burst) {
      std::vector<std::thread> threads;
      for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back([this, burst, t] { work(burst * kThreads + t + 1); });
      for (auto& thread : threads) thread.join();
      if (burst % 4 == 3)  // now and then nothing of the transfers survives
        for (auto& slot : shared_) drop_one(slot.exchange(nullptr, std::memory_order_acquire));
    }
    for (auto& slot : shared_) drop_one(slot.exchange(nullptr, std::memory_order_acquire));
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (made_.load() != dropped_.load()) give_up("a block was lost");
    return {made_.load(), elapsed.count(), dropped_.load()};
  }

 private:
  static constexpr unsigned kThreads = 8;
  static constexpr unsigned kBursts = 12;
  static constexpr std::size_t kShared = 1000;

  static std::size_t random_size(Random& random) {
    const std::size_t dice = random.below(1000);
    if (dice < 1) return random.log_size(15, 18);
    if (dice < 30) return random.log_size(10, 13);
    return random.log_size(4, 8);
  }
  // A shared block must say its own size.
  static std::uint64_t* make_sized(std::size_t bytes) {
    Block block = make_block(bytes + 8);
    block.memory[1] = bytes + 8;
    return block.memory;
  }
  void drop_one(std::uint64_t* memory) {
    if (memory == nullptr) return;
    Block block{memory, memory[1]};
    dropped_.fetch_add(drop_block(block), std::memory_order_relaxed);
  }

  void work(std::uint64_t seed) {
    Random random(seed);
    std::vector<Block> kept;
    std::uint64_t made = 0;
    std::uint64_t dropped = 0;
    for (std::uint64_t i = 0; i < steps_; ++i) {
      const std::size_t dice = random.below(100);
      ++made;
      if (dice < 50) {  // lives for a moment
        Block block = make_block(random_size(random));
        dropped += drop_block(block);
      } else if (dice < 75) {  // lives as long as the thread, or until its place is needed
        Block block = make_block(random_size(random));
        if (kept.size() < 4000)
          kept.push_back(block);
        else
          dropped += drop_block(std::exchange(kept[random.below(kept.size())], block));
      } else {  // for any thread that finds it: acq_rel publishes our block and receives theirs
        drop_one(shared_[random.below(kShared)].exchange(make_sized(random_size(random)), std::memory_order_acq_rel));
      }
    }
    dropped += drop_all(kept);
    made_.fetch_add(made, std::memory_order_relaxed);  // read after the threads were joined
    dropped_.fetch_add(dropped, std::memory_order_relaxed);
  }

  static std::uint64_t drop_block(Block&& block) { return bench::drop_block(block); }
  static std::uint64_t drop_block(Block& block) { return bench::drop_block(block); }

  std::uint64_t steps_;
  std::vector<std::atomic<std::uint64_t*>> shared_;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

Outcome stress(double scale) { return Stress(scale).run(); }

// Every thread allocates a generation of blocks of mixed sizes, then frees it in patterns: part at once in order, part in
// reverse, and the rest a generation later.
template <unsigned kThreads, unsigned kLow, unsigned kHigh>
Outcome generations(double scale, std::uint64_t rounds, std::size_t blocks) {
  rounds = scaled(scale, rounds);
  std::vector<std::uint64_t> dropped(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    Random random(t + 1);
    std::vector<Block> young(blocks);
    std::vector<Block> old;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (auto& block : young) block = make_block(random.log_size(kLow, kHigh));
      for (std::size_t i = 0; i < blocks; i += 3) dropped[t] += drop_block(young[i]);
      for (std::size_t i = (blocks - 2) / 3 * 3 + 1; i < blocks; i -= 3) dropped[t] += drop_block(young[i]);
      dropped[t] += drop_all(old);
      old = young;
    }
    dropped[t] += drop_all(old);
  });
  const auto total = sum_of(dropped);
  if (total != kThreads * rounds * blocks) give_up("a block was lost");
  return {total, seconds, total};
}

Outcome mixed(double scale) { return generations<8, 4, 10>(scale, 1000, 2000); }

// The same range as a real program's: 16 B to 32 KiB, many small. Threads hand whole sets round through shared slots.
Outcome wide(double scale) {
  constexpr unsigned kThreads = 4;
  constexpr std::size_t kSets = 8;
  constexpr std::size_t kBlocks = 400;
  const auto rounds = scaled(scale, 1500);
  std::vector<std::atomic<std::vector<Block>*>> slots(kSets);
  for (auto& slot : slots) slot = new std::vector<Block>;
  std::vector<std::uint64_t> dropped(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    Random random(t + 1);
    auto* set = new std::vector<Block>;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      dropped[t] += drop_all(*set);
      set->clear();
      for (std::size_t i = 0; i < kBlocks; ++i)
        set->push_back(make_block(random.below(4) == 0 ? random.log_size(10, 15) : random.log_size(4, 10)));
      // acq_rel: publishes our set, receives another's
      set = slots[random.below(kSets)].exchange(set, std::memory_order_acq_rel);
    }
    dropped[t] += drop_all(*set);
    delete set;
  });
  std::uint64_t total = sum_of(dropped);
  for (auto& slot : slots) {
    total += drop_all(*slot.load());
    delete slot.load();
  }
  if (total != kThreads * rounds * kBlocks) give_up("a block was lost");
  return {total, seconds, total};
}

constexpr Row kRows[] = {
    {"larson", "8 sequences of threads that come and go, random 16-1000 B", larson},
    {"exchange_2x2", "2 threads allocate, 2 free, random 16-512 B through a queue", exchange<2, 2>},
    {"exchange_4x4", "4 threads allocate, 4 free", exchange<4, 4>},
    {"stress", "bursts of 8 threads, kept and swapped blocks, 16 B-256 KiB", stress},
    {"mixed", "8 threads, generations of 16-1024 B freed in several orders", mixed},
    {"wide", "4 threads hand sets of 16 B-32 KiB to each other", wide},
};

}  // namespace

Rows churn_rows() { return kRows; }

}  // namespace freehold::bench
