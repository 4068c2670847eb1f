// SPDX-License-Identifier: MIT
// Fault: a part of the work is done by one thread while the others have nothing to do (Amdahl's law).
// Two CPUs take, of the time on one: mild and rounds 0.8, severe 0.9, loading 0.7, with every allocator.
#include <barrier>
#include <map>
#include <string>

#include "tests/doctor/faults/fault.hpp"

namespace {

// One thread prepares, then all work.
void prepared(const fault::Options& options, double serial) {
  fault::compute(static_cast<std::size_t>(serial * options.scale));
  fault::in_threads(options.threads, [&](unsigned) { fault::compute(options.part(500e6 - serial)); });
}

// One thread loads a table of many small blocks, which another allocator would do faster; then all work.
void loading(const fault::Options& options) {
  const auto entries = static_cast<std::size_t>(400e3 * options.scale);
  std::map<std::string, std::string> table;
  for (std::size_t i = 0; i < entries; ++i)
    table.emplace("the key of entry number " + std::to_string(i), "what stands in the entry number " + std::to_string(i));
  fault::keep(table.size());
  fault::in_threads(options.threads, [&](unsigned) { fault::compute(options.part(200e6)); });
}

// In each of many rounds all work, then one brings the results together, for which the others wait.
void rounds(const fault::Options& options) {
  constexpr unsigned kRounds = 100;
  const std::size_t together = static_cast<std::size_t>(250e6 * options.scale / kRounds);
  std::barrier done(options.threads, [&]() noexcept { fault::compute(together); });
  fault::in_threads(options.threads, [&](unsigned) {
    for (unsigned i = 0; i < kRounds; ++i) {
      fault::compute(options.part(250e6 / kRounds));
      done.arrive_and_wait();
    }
  });
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"mild", [](const auto& options) { prepared(options, 250e6); }},
                     {"severe", [](const auto& options) { prepared(options, 400e6); }},
                     {"rounds", rounds},
                     {"loading", loading}});
}
