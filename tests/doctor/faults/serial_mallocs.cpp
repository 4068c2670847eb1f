// SPDX-License-Identifier: MIT
// Fault: a part of one thread, full of mallocs that cost the same on any number of CPUs; `shared` has threads beside it that
// write the same cache lines all the time, `alone` has nothing beside it, then threads that scale.
#include <atomic>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

std::atomic<std::uint64_t> g_counters[4];

void mallocs(std::size_t rounds) {
  std::unique_ptr<char[]> held[256];
  fault::Random random(1);
  for (std::size_t i = 0; i < rounds; ++i) held[random() % 256].reset(new char[16 + i % 300]);
}

void count_up(std::size_t rounds) {
  for (std::size_t i = 0; i < rounds; ++i) g_counters[i % 4].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"shared",
                      [](const auto& options) {
                        std::thread serial([&] { mallocs(static_cast<std::size_t>(4e6 * options.scale)); });
                        fault::in_threads(options.threads, [&](unsigned) { count_up(options.part(40e6)); });
                        serial.join();
                      }},
                     {"alone", [](const auto& options) {
                        mallocs(static_cast<std::size_t>(14e6 * options.scale));
                        fault::in_threads(options.threads, [&](unsigned) { fault::compute(options.part(200e6)); });
                      }}});
}
