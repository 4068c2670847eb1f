// SPDX-License-Identifier: MIT
// Fault: one thread. In `faults` malloc maps and unmaps every block besides, which another allocator would not; in `compute`
// there is nothing else.
#include <memory>

#include "tests/doctor/faults/fault.hpp"

int main(int count, char** words) {
  constexpr const char* kSettings = "faults|compute|mallocs";
  const fault::Options options = fault::options(count, words, kSettings, 1);
  const auto times = [&](double amount) { return static_cast<std::size_t>(amount * options.scale); };
  if (options.is("faults")) {
    constexpr std::size_t kBytes = 33 << 20;  // above what malloc's threshold grows to
    for (std::size_t i = 0; i < times(60); ++i) {
      const std::unique_ptr<char[]> block(new char[kBytes]);
      for (std::size_t at = 0; at < kBytes; at += 4096) block[at] = 'x';
      fault::keep(block.get());
    }
  } else if (options.is("compute")) {
    fault::compute(times(600e6));
  } else if (options.is("mallocs")) {
    std::unique_ptr<char[]> held[64];
    for (std::size_t i = 0; i < times(15e6); ++i) held[i % 64].reset(new char[16 + i % 200]);
  } else {
    fault::no_such_setting(kSettings);
  }
}
