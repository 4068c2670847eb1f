// SPDX-License-Identifier: MIT
// Fault: memory is not fast enough. Each thread works through data of its own that the caches cannot hold together.
// Two CPUs take, of the time on one: 0.75 to 0.85, with every allocator; processes are no faster.
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
  constexpr const char* kSettings = "stream|cached|fill";
  const fault::Options options = fault::options(count, words, kSettings);
  fault::in_threads(options.threads, [&](unsigned) {
    if (options.is("stream"))
      stream(64, options.part(250));
    else if (options.is("cached"))
      stream(32, options.part(400));
    else if (options.is("fill"))
      fill(32, options.part(350));
    else
      fault::no_such_setting(kSettings);
  });
}
