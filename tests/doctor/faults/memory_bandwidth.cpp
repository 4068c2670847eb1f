// SPDX-License-Identifier: MIT
// Fault: memory is not fast enough. Each thread works through its own data, which the caches cannot hold together. Two CPUs
// take, of the time on one: 0.75 to 0.85, with every allocator; processes are no faster.
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

// y += a * x over arrays.
void stream(std::size_t megabytes, std::size_t passes) {
  const std::size_t size = (megabytes << 20) / 2 / sizeof(double);
  std::vector<double> x(size, 1.0), y(size, 2.0);
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (std::size_t i = 0; i < size; ++i) y[i] += 3.0 * x[i];
  fault::keep(y[size / 2]);
}

// Writes without reading, past the caches.
void fill(std::size_t megabytes, std::size_t passes) {
  std::vector<char> block(megabytes << 20);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    std::memset(block.data(), static_cast<int>(pass), block.size());
    fault::keep(block.data());
  }
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"stream", fault::each(250, [](unsigned, std::size_t part) { stream(64, part); })},
                     {"cached", fault::each(400, [](unsigned, std::size_t part) { stream(32, part); })},
                     {"fill", fault::each(350, [](unsigned, std::size_t part) { fill(32, part); })}});
}
