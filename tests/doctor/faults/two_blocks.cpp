// SPDX-License-Identifier: MIT
// Fault: two small blocks of malloc's, side by side on one cache line, each written by another thread.
#include <atomic>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {
void two(const fault::Options& options) {
  // Blocks follow each other in malloc's chunks of 32 bytes: of three in a row two share a line.
  std::unique_ptr<std::atomic<int>> made[3];
  for (auto& block : made) block = std::make_unique<std::atomic<int>>(0);
  const auto line = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(made[i].get()) / 64; };
  std::atomic<int>* const blocks[] = {made[line(0) == line(1) ? 0 : 1].get(), made[line(0) == line(1) ? 1 : 2].get()};
  fault::in_threads(2, [&](unsigned me) {
    std::atomic<int>& mine = *blocks[me];
    for (std::size_t i = 0; i < static_cast<std::size_t>(80e6 * options.scale); ++i)
      mine.fetch_add(1, std::memory_order_relaxed);
  });
}
}  // namespace

int main(int count, char** words) { return fault::run(count, words, {{"two", two}}, 2); }
