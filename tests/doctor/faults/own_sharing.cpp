// SPDX-License-Identifier: MIT
// Fault: threads write to one cache line, and where it lies is the program's doing, not the allocator's.
// Two CPUs take twice as long as one, with every allocator, padded or not.
#include <atomic>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

using Counter = std::atomic<std::uint64_t>;

constexpr unsigned kMaxThreads = 1024;
alignas(64) Counter g_counters[kMaxThreads];

void count_up(Counter& counter, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    counter.fetch_add(1, std::memory_order_relaxed);
    fault::compute(4);
  }
}

// A reference count that all threads change: each copies the same shared_ptr.
void references(std::size_t times) {
  static const std::shared_ptr<const int> shared = std::make_shared<const int>(1);
  for (std::size_t i = 0; i < times; ++i) {
    const std::shared_ptr<const int> mine = shared;
    fault::keep(mine.get());
    fault::compute(4);
  }
}

}  // namespace

int main(int count, char** words) {
  // One block: no allocator can part its elements.
  std::vector<Counter> block(kMaxThreads);
  return fault::run(
      count, words,
      {{"array", fault::each(100e6, [](unsigned me, std::size_t part) { count_up(g_counters[me % kMaxThreads], part); })},
       {"block", fault::each(100e6, [&](unsigned me, std::size_t part) { count_up(block[me % kMaxThreads], part); })},
       {"references", fault::each(25e6, [](unsigned, std::size_t part) { references(part); })}},
      fault::machine_threads());
}
