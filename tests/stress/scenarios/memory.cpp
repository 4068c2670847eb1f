// SPDX-License-Identifier: MIT
// How much memory is held for how much that lives. The figures are judged by memory_test.cpp; where a promise is "at most
// glibc's", the same scenario runs without Freehold.
#include <algorithm>
#include <latch>
#include <memory>
#include <random>
#include <utility>

#include "tests/stress/scenarios/scenario.hpp"

namespace freehold::test {
namespace {

void* touched(std::size_t n) {
  void* p = CApi::allocate(n);
  require(p != nullptr, "no memory");
  std::memset(p, 1, n);
  return p;
}

// Some blocks come and go, as in any program that is alive. `buffer`: now and then one of that size, for a message or a
// file.
void light_activity(int milliseconds, std::size_t buffer) {
  Random random(5);
  for (int i = 0; i < milliseconds; i += 10) {
    for (int k = 0; k < 1000; ++k) CApi::deallocate(CApi::allocate(16 + random.below(1000)));
    std::vector<void*> some(500);
    for (void*& p : some) p = CApi::allocate(16 + random.below(1000));
    for (void* p : some) CApi::deallocate(p);
    if (buffer != 0) CApi::deallocate(touched(buffer));
    ::usleep(10'000);
  }
}

// memory_of_blocks BYTES: what 64 MiB of blocks of that size cost.
SCENARIO(memory_of_blocks) {
  const std::size_t n = number(arguments, 0), count = 64 * kMiB / n;
  Table<void*> blocks(count);
  const double before = resident_mib();
  for (void*& p : blocks) p = touched(n);
  figure("overhead_factor", (resident_mib() - before) * kMiB / static_cast<double>(count * n));
  for (void* p : blocks) CApi::deallocate(p);
}

// memory_producers_and_one_freer sleep|exit: rounds of producers that fill memory, then sleep or exit; one thread frees all.
SCENARIO(memory_producers_and_one_freer) {
  const bool exits = !arguments.empty() && arguments[0] == "exit";
  constexpr unsigned kProducers = 4, kRounds = 8;
  constexpr std::size_t kBytes = 25 * kMiB, kSlots = kBytes / 64;
  Table<void*> table(kProducers * kSlots);
  const double before = resident_mib();
  std::latch end(1);
  std::vector<std::thread> sleepers;
  double peak_live = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    std::atomic<std::size_t> live{0};
    std::latch produced(kProducers);
    for (unsigned t = 0; t < kProducers; ++t)
      sleepers.emplace_back([&, t, round] {
        Random random(round * 10 + t);
        std::size_t bytes = 0, i = 0;
        while (bytes < kBytes && i < kSlots) {
          const std::size_t n = 40 + random.below(600);
          table[t * kSlots + i++] = touched(n);
          bytes += n;
        }
        live += bytes;
        produced.count_down();
        if (!exits) end.wait();
      });
    produced.wait();
    if (exits) {
      for (std::thread& t : sleepers) t.join();
      sleepers.clear();
    }
    peak_live = std::max(peak_live, static_cast<double>(live) / kMiB);
    std::thread([&] {  // one thread that only frees, in no order
      std::shuffle(table.begin(), table.end(), std::mt19937_64(round));
      for (void*& p : table) CApi::deallocate(std::exchange(p, nullptr));
    })
        .join();
  }
  figure("live_mib", peak_live);
  figure("held_mib", peak_mib() - before);
  end.count_down();
  for (std::thread& t : sleepers) t.join();
}

// A steady stream from producers to one thread that only frees, 100 MiB on the way.
SCENARIO(memory_stream_to_one_freer) {
  constexpr unsigned kProducers = 3;
  constexpr std::size_t kOnTheWay = 400'000;
  Table<std::atomic<void*>> ring(kOnTheWay);
  const double before = resident_mib();
  std::atomic<std::size_t> tail{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> producers;
  for (unsigned t = 0; t < kProducers; ++t)
    producers.emplace_back([&, t] {
      Random random(t);
      while (!stop) {
        void* p = touched(16 + random.below(510));
        std::atomic<void*>& place = ring[tail.fetch_add(1) % kOnTheWay];
        void* expected = nullptr;
        while (!place.compare_exchange_weak(expected, p)) {
          expected = nullptr;
          if (stop) {
            CApi::deallocate(p);
            return;
          }
          std::this_thread::yield();
        }
      }
    });
  Random random(9);
  for (std::size_t freed = 0; freed < 4'000'000;) {
    // The ring is kept nearly full: an entry is freed once all of it has been written once.
    if (tail.load(std::memory_order_relaxed) < kOnTheWay) continue;
    if (void* p = ring[random.below(kOnTheWay)].exchange(nullptr); p != nullptr) {
      CApi::deallocate(p);
      ++freed;
    }
  }
  stop = true;
  for (std::thread& t : producers) t.join();
  figure("live_mib", kOnTheWay * (16 + 509 / 2.0) / kMiB);  // sizes are 16 … 525
  figure("held_mib", peak_mib() - before);
  for (std::atomic<void*>& place : ring) CApi::deallocate(place);
}

// memory_change_of_sizes FROM TO: 480 MiB of blocks of FROM bytes (0: 16 to 1024), 99% of them freed at random, then 300 MiB
// of blocks of TO bytes; the total is what stays when the purge delay has passed.
SCENARIO(memory_change_of_sizes) {
  const std::size_t from = number(arguments, 0), to = number(arguments, 1);
  Random random(11);
  const std::size_t first_count = 480 * kMiB / (from != 0 ? from : 520);
  const std::size_t second_count = 300 * kMiB / to;
  Table<void*> first(first_count), second(second_count);
  const double before = resident_mib();
  for (void*& p : first) p = touched(from != 0 ? from : 16 + random.below(1009));
  figure("first_mib", resident_mib() - before);
  std::shuffle(first.begin(), first.end(), std::mt19937_64(1));
  for (std::size_t i = first_count / 100; i < first_count; ++i) CApi::deallocate(first[i]);
  figure("after_free_mib", resident_mib() - before);
  for (void*& p : second) p = touched(to);
  figure("at_once_mib", resident_mib() - before);
  light_activity(1000, 100000);
  figure("total_mib", resident_mib() - before);
  figure("peak_mib", peak_mib() - before);
}

// memory_after_a_spike BYTES BUFFER: 300 MiB of blocks of BYTES come and go; then the program goes on with little.
SCENARIO(memory_after_a_spike) {
  const std::size_t n = number(arguments, 0);
  Table<void*> blocks(300 * kMiB / n);
  const double before = resident_mib();
  for (int spike = 0; spike < 2; ++spike) {
    for (void*& p : blocks) p = touched(n);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(1));
    for (void* p : blocks) CApi::deallocate(p);
    if (spike == 0) {
      CApi::trim();
      figure("after_trim_mib", resident_mib() - before);
    } else {
      figure("after_free_mib", resident_mib() - before);
      light_activity(1500, number(arguments, 1));
      figure("after_delay_mib", resident_mib() - before);
    }
  }
}

// A vector that grows: large blocks are moved by the page tables, not copied beside themselves.
SCENARIO(memory_growing_block) {
  const double before = resident_mib();
  std::size_t n = 64 * kKiB;
  char* p = static_cast<char*>(touched(n));
  std::size_t moves = 0;
  while (n < 500 * kMiB) {
    const std::size_t to = n + n / 2;
    char* q = static_cast<char*>(CApi::reallocate(p, to));
    require(q != nullptr, "no memory");
    require(q[0] == 1 && q[n - 1] == 1 && q[n / 2] == 1, "contents lost");
    moves += q != p;
    p = q;
    std::memset(p + n, 1, to - n);
    n = to;
  }
  figure("final_mib", static_cast<double>(n) / kMiB);
  figure("peak_mib", peak_mib() - before);
  figure("moves", static_cast<double>(moves));
  CApi::deallocate(p);
}

}  // namespace
}  // namespace freehold::test
