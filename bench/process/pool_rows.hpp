// SPDX-License-Identifier: MIT
// Shared by process_rows and gearman_pool_rows: tasks of 1 KiB in and out, by whatever pool runs them.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace freehold::bench {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 1024;
constexpr unsigned kClients = 8;

template <class Result>
void must_be_whole(const Result& result) {
  if (result.bytes().size() == kBytes) return;
  std::fprintf(stderr, "a task failed\n");
  std::_Exit(1);
}

// Tasks per second, by clients that have so many under way.
template <class Pool>
double throughput(Pool& pool, unsigned under_way, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> total{0};
  std::vector<std::thread> clients;
  const auto begin = Clock::now();
  for (unsigned c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      const std::string input(kBytes, 'x');
      std::vector<decltype(pool.submit(input))> futures(under_way);
      std::uint64_t done = 0;
      for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); i = (i + 1) % under_way) {
        if (futures[i].valid()) must_be_whole(futures[i].get()), ++done;
        futures[i] = pool.submit(input);
      }
      total += done;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& client : clients) client.join();
  return static_cast<double>(total.load()) / std::chrono::duration<double>(Clock::now() - begin).count();
}

// Microseconds of a call.
template <class Pool>
double round_trip(Pool& pool, unsigned calls) {
  const std::string input(kBytes, 'x');
  const auto begin = Clock::now();
  for (unsigned i = 0; i < calls; ++i) must_be_whole(pool.call(input));
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace freehold::bench
