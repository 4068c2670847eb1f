// SPDX-License-Identifier: MIT
// How long a cache line takes to another CPU and back: two threads pass a counter to and fro. On a virtual machine it varies
// by several times from hour to hour, with the place where the hypervisor runs the CPUs, and the rows in which memory
// crosses CPUs vary with it. Prints the nanoseconds of one round trip, the median of 20 series.
#include <algorithm>
#include <atomic>

#include "bench/macro/rows.hpp"

using namespace freehold::bench;

namespace {

constexpr unsigned kSeries = 20;
constexpr unsigned kTrips = 5'000;

alignas(64) std::atomic<unsigned> g_counter{0};

void pass(unsigned from) {
  while (g_counter.load(std::memory_order_acquire) != from) __builtin_ia32_pause();
  g_counter.store(from + 1, std::memory_order_release);  // pairs with the other thread's load
}

}  // namespace

int main() {
  if (std::thread::hardware_concurrency() < 2) return 1;  // two threads on one CPU would wait for the scheduler
  std::vector<double> series;
  for (unsigned s = 0; s < kSeries; ++s) {
    g_counter = 0;
    const double seconds = run_threads(2, pin_to_cpu, [](unsigned thread) {
      for (unsigned trip = 0; trip < kTrips; ++trip) pass(2 * trip + thread);
    });
    series.push_back(seconds * 1e9 / kTrips);
  }
  std::nth_element(series.begin(), series.begin() + kSeries / 2, series.end());
  std::printf("%.1f\n", series[kSeries / 2]);
}
