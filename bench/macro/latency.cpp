// SPDX-License-Identifier: MIT
// How long single calls take: `latency NAME [SCALE]` runs one mix, times every malloc and every free by the CPU's time-stamp
// counter, and prints the distribution as one line of JSON; `latency --list` names the mixes. A program with deadlines needs
// the distribution, because a mean hides the refill, the page fault, the purge, and the lock that another thread holds.
//
// Each thread counts its calls in its own histogram outside malloc, whose buckets are 1/32 of their value wide. The time of
// the clock itself (the least of many empty measurements) is subtracted. Interrupts and other processes are counted, too,
// because they disturb every malloc alike; the mix `clock`, which measures nothing, shows the machine's own share.
#include <malloc.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

// Values up to 2^36 ticks, in buckets of 1/32: as a high dynamic range histogram does it.
class Histogram {
 public:
  void add(std::uint64_t ticks) {
    ++counts_[bucket(ticks)];
    worst_ = std::max(worst_, ticks);
    ++total_;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    worst_ = std::max(worst_, other.worst_);
    total_ += other.total_;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t worst() const { return worst_; }
  // The least value that at least `share` of all calls did not exceed, to a bucket's width.
  [[nodiscard]] std::uint64_t quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i)
      if ((seen += counts_[i]) > wanted) return std::min(value(i), worst_);
    return worst_;
  }

 private:
  static constexpr unsigned kFine = 5;  // 2^5 buckets a doubling
  static constexpr std::size_t kBuckets = (36 - kFine + 1) << kFine;

  static std::size_t bucket(std::uint64_t ticks) {
    if (ticks < (1U << kFine)) return ticks;
    const auto shift = static_cast<unsigned>(std::bit_width(ticks)) - kFine - 1;
    return std::min<std::size_t>((std::size_t{shift + 1} << kFine) + (ticks >> shift) - (1U << kFine), kBuckets - 1);
  }
  static std::uint64_t value(std::size_t bucket) {
    if (bucket < (1U << kFine)) return bucket;
    const std::size_t shift = (bucket >> kFine) - 1;
    return ((bucket & ((1U << kFine) - 1)) + (1U << kFine)) << shift;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t worst_ = 0;
  std::uint64_t total_ = 0;
};

[[gnu::always_inline]] inline std::uint64_t before() {
  _mm_lfence();  // earlier instructions are not counted
  return __rdtsc();
}
[[gnu::always_inline]] inline std::uint64_t after() {
  unsigned cpu;
  const std::uint64_t now = __rdtscp(&cpu);  // waits for the measured call
  _mm_lfence();
  return now;
}

// One thread's calls.
struct Calls {
  Histogram allocations;
  Histogram frees;
};

// Ticks of a measurement of nothing, and ticks in a nanosecond.
struct Clockwork {
  std::uint64_t overhead = ~std::uint64_t{0};
  double per_ns = 1;

  Clockwork() {
    const auto start = Clock::now();
    const std::uint64_t first = __rdtsc();
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t from = before();
      overhead = std::min(overhead, after() - from);
    }
    while (Clock::now() - start < std::chrono::milliseconds(50)) continue;
    const std::uint64_t last = __rdtsc();
    per_ns = static_cast<double>(last - first) / std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }
  [[nodiscard]] std::uint64_t since(std::uint64_t from, std::uint64_t to) const {
    const std::uint64_t ticks = to - from;
    return ticks > overhead ? ticks - overhead : 0;
  }
};

class Timed {
 public:
  Timed(const Clockwork& clock, Calls& calls) : clock_(clock), calls_(calls) {}

  char* allocate(std::size_t bytes) {
    const std::uint64_t from = before();
    void* block = std::malloc(bytes);
    const std::uint64_t to = after();
    calls_.allocations.add(clock_.since(from, to));
    return static_cast<char*>(must(block));
  }
  void free(char* block) {
    const std::uint64_t from = before();
    std::free(block);
    const std::uint64_t to = after();
    calls_.frees.add(clock_.since(from, to));
  }
  void nothing() {
    const std::uint64_t from = before();
    const std::uint64_t to = after();
    calls_.allocations.add(clock_.since(from, to));
    calls_.frees.add(clock_.since(from, to));
  }

 private:
  const Clockwork& clock_;
  Calls& calls_;
};

struct Mix {
  const char* name;
  const char* summary;
  unsigned threads;
  void (*run)(Timed& timed, std::uint64_t seed, double scale);
  bool trimmed;  // another thread calls malloc_trim every 10 ms
};

void measure_nothing(Timed& timed, std::uint64_t, double scale) {
  for (std::uint64_t i = scaled(scale, 4'000'000); i > 0; --i) timed.nothing();
}

// `held` blocks, replaced at random `times` times by ones of `next_size(random)` bytes, their ends touched.
template <class NextSize>
void replace_at_random(Timed& timed, std::uint64_t seed, std::size_t held_blocks, std::uint64_t times, NextSize next_size) {
  Random random(seed);
  Table<char*> held(held_blocks);
  for (std::uint64_t i = times; i > 0; --i) {
    char*& block = held[random.below(held.size())];
    if (block != nullptr) timed.free(block);
    const std::size_t bytes = next_size(random);
    block = timed.allocate(bytes);
    block[0] = block[bytes - 1] = 1;
  }
  for (char* block : held)
    if (block != nullptr) timed.free(block);
}

// Blocks of 16 B to 1 KiB, 10,000 held.
void churn(Timed& timed, std::uint64_t seed, double scale) {
  replace_at_random(timed, seed, 10'000, scaled(scale, 1'500'000), [](Random& random) { return random.log_size(4, 10); });
}

// Blocks of 16 B to 256 KiB, most of them small; 2,000 held.
void wide(Timed& timed, std::uint64_t seed, double scale) {
  replace_at_random(timed, seed, 2'000, scaled(scale, 700'000), [](Random& random) {
    const std::size_t dice = random.below(1000);
    return dice < 900 ? random.log_size(4, 10) : dice < 995 ? random.log_size(10, 15) : random.log_size(15, 18);
  });
}

// Buffers of 64 KiB to 4 MiB, 16 held.
void large(Timed& timed, std::uint64_t seed, double scale) {
  replace_at_random(timed, seed, 16, scaled(scale, 60'000), [](Random& random) { return random.log_size(16, 22); });
}

// A program that swells to 100 MB of small and middling blocks and gives nearly all back, again and again: what is purged is
// faulted in again.
void spike(Timed& timed, std::uint64_t seed, double scale) {
  Random random(seed);
  Table<char*> held(100'000);
  for (std::uint64_t round = scaled(scale, 6); round > 0; --round) {
    for (char*& block : held) {
      const std::size_t bytes = random.log_size(6, 12);
      block = timed.allocate(bytes);
      std::memset(block, 1, bytes);
    }
    for (std::size_t i = held.size(); i > 1; --i) std::swap(held[i - 1], held[random.below(i)]);
    for (char* block : held) timed.free(block);
  }
}

constexpr Mix kMixes[] = {
    {"clock", "nothing is called: the machine's own interruptions", 2, measure_nothing, false},
    {"churn_1t", "1 thread replaces small blocks, 16 B-1 KiB", 1, churn, false},
    {"churn_4t", "4 threads, the same", 4, churn, false},
    {"churn_trim_2t", "2 threads, the same, beside one that calls malloc_trim every 10 ms", 2, churn, true},
    {"wide_2t", "2 threads replace blocks of 16 B-256 KiB", 2, wide, false},
    {"large_2t", "2 threads replace buffers of 64 KiB-4 MiB", 2, large, false},
    {"large_trim_2t", "2 threads, the same, beside malloc_trim", 2, large, true},
    {"spike_1t", "1 thread swells by 100 MB and frees it in random order, six times", 1, spike, false},
};

// Calls malloc_trim until it is stopped.
class Trimmer {
 public:
  explicit Trimmer(bool wanted) {
    if (wanted) thread_ = std::thread([this] { work(); });
  }
  ~Trimmer() {
    end_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  Trimmer(const Trimmer&) = delete;
  Trimmer& operator=(const Trimmer&) = delete;

 private:
  void work() {
    while (!end_.load(std::memory_order_relaxed)) {
      malloc_trim(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::atomic<bool> end_{false};
  std::thread thread_;
};

void print(const char* call, const Histogram& all, const Clockwork& clock) {
  constexpr double kShares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
  std::printf("\"%s\": {\"calls\": %llu, \"ns\": [", call, static_cast<unsigned long long>(all.total()));
  for (const double share : kShares) std::printf("%.1f, ", static_cast<double>(all.quantile(share)) / clock.per_ns);
  std::printf("%.1f]}", static_cast<double>(all.worst()) / clock.per_ns);
}

int run(const Mix& mix, double scale) {
  const Clockwork clock;
  Table<Calls> calls(mix.threads);
  Table<Calls> sum(1);
  {
    const Trimmer trimmer(mix.trimmed);
    run_threads(mix.threads, [&](unsigned t) {
      Timed timed(clock, calls[t]);
      mix.run(timed, t + 1, scale);
    });
  }
  for (const Calls& one : calls) {
    sum[0].allocations.add(one.allocations);
    sum[0].frees.add(one.frees);
  }
  std::printf("{\"mix\": \"%s\", ", mix.name);
  print("malloc", sum[0].allocations, clock);
  std::printf(", ");
  print("free", sum[0].frees, clock);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace freehold::bench

int main(int argc, char** argv) {
  using namespace freehold::bench;
  return row_main<Mix>("latency", {kMixes}, run, argc, argv);
}
