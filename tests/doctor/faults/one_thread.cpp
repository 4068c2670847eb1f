// SPDX-License-Identifier: MIT
// Fault: one thread. In `faults` malloc maps and unmaps every block besides, which another allocator would not; in `compute`
// there is nothing else.
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

void faults(unsigned, std::size_t times) {
  constexpr std::size_t kBytes = 33 << 20;  // above what malloc's threshold grows to
  for (std::size_t i = 0; i < times; ++i) {
    const std::unique_ptr<char[]> block(new char[kBytes]);
    for (std::size_t at = 0; at < kBytes; at += 4096) block[at] = 'x';
    fault::keep(block.get());
  }
}

void mallocs(unsigned, std::size_t times) {
  std::unique_ptr<char[]> held[64];
  for (std::size_t i = 0; i < times; ++i) held[i % 64].reset(new char[16 + i % 200]);
}

// All of it in the program's one thread.
auto alone(double amount, void (*work)(unsigned, std::size_t)) {
  return [=](const fault::Options& options) { work(0, static_cast<std::size_t>(amount * options.scale)); };
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"faults", alone(60, faults)},
                     {"compute", alone(600e6, [](unsigned, std::size_t times) { fault::compute(times); })},
                     {"mallocs", alone(15e6, mallocs)}},
                    1);
}
