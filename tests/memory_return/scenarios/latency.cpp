// SPDX-License-Identifier: MIT
// The longest single call of malloc or free beside very many free runs, very many live ones, and a trim in another thread.
#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

constexpr double kMostResidentMib = 1200;  // a malloc that writes into untouched blocks makes do with fewer

void report(const char* what, const Latencies& all) {
  all.print(what);
  figure("worst_ms", all.worst_ms());
  figure("worst_cpu_ms", all.worst_cpu_ms());
  figure("mean_cpu_us", all.mean_cpu_us());
}

// Runs of 40 KiB, each between two that stay, so that none merges. One in eight is touched.
class Runs {
 public:
  explicit Runs(std::size_t n) : blocks_(2 * n) {
    for (; count_ < blocks_.size() && (count_ % 1024 != 0 || private_mib() < kMostResidentMib); ++count_) {
      void*& block = blocks_[count_];
      block = CApi::allocate(kBytes);
      require(block != nullptr, "no memory");
      if (count_ % 16 == 0) *static_cast<char*>(block) = 1;
    }
  }
  ~Runs() {
    for (void* block : blocks_) CApi::deallocate(block);
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  [[nodiscard]] std::size_t size() const { return count_ / 2; }
  void free_every_other(Latencies* all) {
    for (std::size_t i = 0; i < count_; i += 2) {
      void* const block = blocks_[i];
      blocks_[i] = nullptr;
      const auto release = [block] {
        CApi::deallocate(block);
        return 0;
      };
      if (all != nullptr)
        all->time(release);
      else
        release();
    }
  }

 private:
  static constexpr std::size_t kBytes = 40 * kKiB;
  Table<void*> blocks_;
  std::size_t count_ = 0;
};

// Small and large blocks come and go; every call is timed.
void work(Latencies& all, double seconds) {
  Random random(5);
  static std::array<void*, 512> blocks;
  const double end = wall_seconds() + seconds;
  while (wall_seconds() < end) {
    void*& block = blocks[random.below(blocks.size())];
    if (block != nullptr) {
      void* const old = block;
      block = nullptr;
      all.time([old] {
        CApi::deallocate(old);
        return 0;
      });
      continue;
    }
    const std::size_t bytes = 16 + random.below(random.below(16) == 0 ? 256 * kKiB : 4 * kKiB);
    block = all.time([bytes] { return CApi::allocate(bytes); });
    require(block != nullptr, "no memory");
  }
  for (void*& block : blocks) {
    CApi::deallocate(block);
    block = nullptr;
  }
}

// RUNS: how many become free.
SCENARIO(latency_of_freeing_runs) {
  Runs runs(number(arguments, 0));
  Latencies all;
  runs.free_every_other(&all);
  Latencies after;
  work(after, 0.5);
  after.print("malloc and free after the frees");
  figure("runs", static_cast<double>(runs.size()));
  report("free of many runs", all);
  figure("worst_ms", std::max(all.worst_ms(), after.worst_ms()));
}

// BLOCKS of 1 MiB, written, are allocated, freed in their order, and allocated again.
SCENARIO(latency_of_freeing_large) {
  Table<void*> blocks(number(arguments, 0));
  Latencies mallocs, frees;
  double most = 0;
  const auto allocate_all = [&] {
    for (void*& block : blocks) {
      block = mallocs.time([] { return CApi::allocate(kMiB); });
      require(block != nullptr, "no memory");
      std::memset(block, 1, kMiB);
    }
  };
  allocate_all();
  for (void*& block : blocks) {
    const double before = private_mib();
    frees.time([&] {
      CApi::deallocate(block);
      return 0;
    });
    most = std::max(most, before - private_mib());
  }
  allocate_all();
  for (void* block : blocks) CApi::deallocate(block);
  mallocs.print("malloc of 1 MiB");
  frees.print("free of 1 MiB");
  figure("worst_malloc_cpu_ms", mallocs.worst_cpu_ms());
  figure("worst_free_cpu_ms", frees.worst_cpu_ms());
  figure("most_given_back_mib", most);
}

SCENARIO(latency_beside_a_trim) {
  Runs runs(number(arguments, 0));
  runs.free_every_other(nullptr);
  std::atomic<bool> stop{false};
  std::thread trimmer([&] {
    while (!stop) {
      CApi::trim();
      for (int i = 0; i < 64; ++i) CApi::deallocate(allocate_written(100 * kKiB));
    }
  });
  Latencies all;
  work(all, 1.5);
  stop = true;
  trimmer.join();
  figure("runs", static_cast<double>(runs.size()));
  report("malloc and free beside a trim", all);
}

// BLOCKS of BYTES, untouched; every STEP-th of them is freed (0: none).
SCENARIO(latency_with_many_spans) {
  const std::size_t bytes = number(arguments, 1), step = number(arguments, 2);
  Table<void*> blocks(number(arguments, 0));
  std::size_t n = 0;
  for (; n < blocks.size() && (n % 1024 != 0 || private_mib() < kMostResidentMib); ++n) {
    blocks[n] = CApi::allocate(bytes);
    require(blocks[n] != nullptr, "no memory");
  }
  for (std::size_t i = 0; step != 0 && i < n; i += step) {
    CApi::deallocate(blocks[i]);
    blocks[i] = nullptr;
  }
  Latencies all;
  work(all, 1.5);
  figure("blocks", static_cast<double>(n));
  report("malloc and free with many spans", all);
  for (void* block : blocks) CApi::deallocate(block);
}

}  // namespace
}  // namespace freehold::test
