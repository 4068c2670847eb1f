// SPDX-License-Identifier: MIT
// A random walk over an allocator's interface beside a shadow model that knows every live block: where it lies, how large
// and how aligned it was asked for, and what was written into it. An error of the allocator shows as a block that overlaps
// another, is misaligned, is not zero where it should be, or does not read back.
//
// One thread: the model is exact, an interval map finds an overlap at the moment it is handed out.
// Many threads: blocks live in a table that all threads take from and put into, so that most frees are another thread's;
// contents tell of overlaps. Threads come and go in rounds while the blocks stay.
//
// The model's own memory is its program's: under a preload the model lives in the allocator that it watches, as any
// program does.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/pattern.hpp"

namespace freehold::test {

// A number from the environment: FREEHOLD_TEST_SEED to replay, FREEHOLD_TEST_SCALE to run longer.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

struct Block {
  void* address = nullptr;
  std::size_t bytes = 0;
  std::uint64_t stamp = 0;
};

// The blocks that a trace asks for. Every phase has its own taste, so that size classes empty and fill again.
class Requests {
 public:
  Requests(Random& random, std::size_t max_bytes) : random_(random), max_bytes_(max_bytes) { next_phase(); }

  void next_phase() {
    favourite_ = std::size_t{1} << random_.below(15);
    taste_ = random_.below(4);
  }
  std::size_t bytes() {
    std::size_t n = 0;
    const std::size_t dice = random_.below(1000);
    if (taste_ == 0 && dice < 700) {
      n = favourite_ + random_.below(favourite_ / 8 + 1);
    } else if (dice < 600) {
      n = random_.below(257);
    } else if (dice < 930) {
      n = random_.below(std::size_t{1} << (6 + random_.below(10)));
    } else if (dice < 990) {
      n = random_.below(std::size_t{1} << (15 + random_.below(6)));
    } else {
      n = random_.below(std::size_t{1} << (20 + random_.below(taste_ == 3 ? 6 : 3)));
    }
    return n < max_bytes_ ? n : max_bytes_;
  }
  // Mostly small ones, now and then megabytes.
  std::size_t alignment() {
    const std::size_t dice = random_.below(100);
    return std::size_t{1} << (dice < 80 ? random_.below(10) : dice < 98 ? random_.below(17) : random_.below(24));
  }

 private:
  Random& random_;
  std::size_t max_bytes_;
  std::size_t favourite_ = 0;
  std::size_t taste_ = 0;
};

// The steps that both traces share: what is asked, what must hold of the answer. A step returns an error as text, empty if
// all is well: GoogleTest's assertions are not for ten million calls from many threads.
template <class Api>
class Steps {
 public:
  Steps(std::uint64_t seed, std::size_t max_bytes) : random_(seed), requests_(random_, max_bytes) {}

  Random& random() { return random_; }
  void next_phase() { requests_.next_phase(); }

  std::string allocate(Block& out) {
    const std::size_t bytes = requests_.bytes();
    const std::size_t dice = random_.below(100);
    std::size_t alignment = 16;
    bool zeroed = false;
    void* p = nullptr;
    if (dice < 70) {
      p = Api::allocate(bytes);
    } else if (dice < 85) {
      p = Api::allocate_zeroed(bytes);
      zeroed = true;
    } else {
      alignment = requests_.alignment();
      p = Api::allocate_aligned(alignment, bytes);
      if (alignment < 16) alignment = 16;
    }
    if (p == nullptr) return "no memory for " + std::to_string(bytes) + " bytes aligned to " + std::to_string(alignment);
    if (reinterpret_cast<std::uintptr_t>(p) % alignment != 0)
      return std::to_string(bytes) + " bytes not aligned to " + std::to_string(alignment);
    if (zeroed && !all_zero(p, bytes)) return std::to_string(bytes) + " zeroed bytes are not zero";
    return adopt(out, p, bytes);
  }

  std::string reallocate(Block& block) {
    std::size_t bytes = requests_.bytes();
    if (random_.below(2) == 0 && block.bytes > 0) bytes = 1 + random_.below(2 * block.bytes);  // a neighbouring size
    if (bytes == 0) bytes = 1;
    void* p = Api::reallocate(block.address, bytes);
    if (p == nullptr) return "no memory to resize to " + std::to_string(bytes);
    const std::size_t kept = bytes < block.bytes ? bytes : block.bytes;
    if (!intact(p, kept, block.bytes, block.stamp))
      return "resizing " + std::to_string(block.bytes) + " to " + std::to_string(bytes) + " lost contents";
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) return "a resized block is not aligned to 16";
    return adopt(block, p, bytes);
  }

  std::string check(const Block& block) const {
    return intact(block.address, block.bytes, block.stamp)
               ? std::string()
               : "a live block of " + std::to_string(block.bytes) + " bytes was overwritten";
  }

  std::string release(Block& block) {
    std::string error = check(block);
    Api::deallocate(block.address);
    block = Block{};
    return error;
  }

 private:
  std::string adopt(Block& out, void* p, std::size_t bytes) {
    const std::size_t usable = Api::usable_size(p);
    if (usable < bytes) return "usable size " + std::to_string(usable) + " of " + std::to_string(bytes) + " bytes";
    // Every byte that is said to be usable is used.
    out = Block{p, random_.below(4) == 0 ? usable : bytes, random_.next()};
    fill(out.address, out.bytes, out.stamp);
    return {};
  }

  Random random_;
  Requests requests_;
};

// Live blocks as intervals; place() fails if a new one overlaps.
class Intervals {
 public:
  bool place(const Block& block) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block.address);
    const std::uintptr_t end = begin + (block.bytes == 0 ? 1 : block.bytes);
    const auto after = live_.lower_bound(begin);
    if (after != live_.end() && after->first < end) return false;
    if (after != live_.begin() && std::prev(after)->second > begin) return false;
    live_[begin] = end;
    return true;
  }
  void remove(const void* address) { live_.erase(reinterpret_cast<std::uintptr_t>(address)); }

 private:
  std::map<std::uintptr_t, std::uintptr_t> live_;
};

// `operations` random steps in one thread. Returns an error, or nothing.
template <class Api>
std::string run_trace(std::uint64_t seed, std::size_t operations, std::size_t max_live_bytes) {
  constexpr std::size_t kSlots = 4096;
  std::vector<Block> blocks(kSlots);
  Intervals intervals;
  Steps<Api> steps(seed, max_live_bytes / 4);
  std::size_t live_bytes = 0;
  const auto drop = [&](Block& block) {
    intervals.remove(block.address);
    live_bytes -= block.bytes;
    return steps.release(block);
  };
  for (std::size_t i = 0; i < operations; ++i) {
    Random& random = steps.random();
    if (random.below(5000) == 0) steps.next_phase();
    if (random.below(20000) == 0) Api::trim();
    std::string error;
    Block& block = blocks[random.below(kSlots)];
    if (block.address == nullptr) {
      error = steps.allocate(block);
      if (error.empty() && !intervals.place(block)) error = "a new block overlaps a live one";
      live_bytes += block.bytes;
    } else if (random.below(4) == 0) {
      intervals.remove(block.address);
      live_bytes -= block.bytes;
      error = steps.reallocate(block);
      if (error.empty() && !intervals.place(block)) error = "a resized block overlaps a live one";
      live_bytes += block.bytes;
    } else {
      error = drop(block);
    }
    // Too much, or now and then for the sake of it: nearly everything goes, in random order.
    if (error.empty() && (live_bytes > max_live_bytes || random.below(30000) == 0))
      for (std::size_t k = 0; k < kSlots && error.empty(); ++k)
        if (Block& victim = blocks[random.below(kSlots)]; victim.address != nullptr) error = drop(victim);
    if (!error.empty()) return "operation " + std::to_string(i) + ": " + error;
  }
  for (Block& block : blocks)
    if (block.address != nullptr)
      if (std::string error = drop(block); !error.empty()) return "at the end: " + error;
  return {};
}

// The same from `threads` threads at once over one table, in `rounds` generations of threads.
template <class Api>
std::string run_shared_trace(std::uint64_t seed, unsigned threads, unsigned rounds, std::size_t operations_per_thread) {
  struct alignas(64) Slot {
    std::atomic<bool> taken{false};
    Block block;
  };
  constexpr std::size_t kSlots = 2048;
  const auto table = std::make_unique<Slot[]>(kSlots);
  std::atomic<bool> failed{false};
  std::string first_error;
  const auto work = [&](std::uint64_t thread_seed) {
    Steps<Api> steps(thread_seed, std::size_t{1} << 20);
    for (std::size_t i = 0; i < operations_per_thread && !failed.load(std::memory_order_relaxed); ++i) {
      if (steps.random().below(3000) == 0) steps.next_phase();
      if (steps.random().below(50000) == 0) Api::trim();
      Slot& slot = table[steps.random().below(kSlots)];
      if (slot.taken.exchange(true, std::memory_order_acquire)) continue;  // in use: take another
      std::string error;
      if (slot.block.address == nullptr) {
        error = steps.allocate(slot.block);
      } else if (steps.random().below(5) == 0) {
        error = steps.reallocate(slot.block);
      } else {
        error = steps.release(slot.block);
      }
      slot.taken.store(false, std::memory_order_release);
      if (!error.empty() && !failed.exchange(true)) first_error = "operation " + std::to_string(i) + ": " + error;
    }
  };
  for (unsigned round = 0; round < rounds && !failed; ++round) {
    std::vector<std::thread> generation;
    for (unsigned t = 0; t < threads; ++t) generation.emplace_back(work, seed + round * 1000 + t);
    for (std::thread& t : generation) t.join();
  }
  Steps<Api> last(seed, 0);
  for (std::size_t i = 0; i < kSlots; ++i)
    if (table[i].block.address != nullptr)
      if (std::string error = last.release(table[i].block); !error.empty() && first_error.empty())
        first_error = "at the end: " + error;
  return first_error;
}

}  // namespace freehold::test
