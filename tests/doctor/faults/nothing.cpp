// SPDX-License-Identifier: MIT
// No fault: two CPUs take half the time of one. That another allocator would be faster on one CPU, too, as it would with
// the setting "buffers" (a third of the time), is not a matter of scaling.
#include <memory>
#include <string>
#include <unordered_map>

#include "tests/doctor/faults/fault.hpp"

namespace {

// Small blocks that come and go, few at a time: glibc's cache of the thread serves nearly all.
void strings(unsigned me, std::size_t rounds) {
  fault::Random random(me);
  std::string held[16];
  for (std::size_t i = 0; i < rounds; ++i) {
    held[i % 16] = std::string(20 + random() % 100, 'x');
    held[i % 16].shrink_to_fit();
  }
}

// Blocks of all sizes from the arena that glibc gives each thread.
void buffers(unsigned me, std::size_t rounds) {
  fault::Random random(me);
  std::unique_ptr<char[]> held[256];
  for (std::size_t i = 0; i < rounds; ++i) {
    std::unique_ptr<char[]>& place = held[random() % 256];
    place.reset(new char[std::size_t{16} << random() % 10]);
    place[0] = 'x';
  }
}

// Words are counted in a table of the thread's own.
void words_of(unsigned me, std::size_t rounds) {
  fault::Random random(me);
  std::unordered_map<std::string, std::size_t> counts;
  for (std::size_t i = 0; i < rounds; ++i) ++counts["a word of some length " + std::to_string(random() % 2'000)];
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"compute", fault::each(500e6, [](unsigned, std::size_t part) { fault::compute(part); })},
                     {"strings", fault::each(30e6, strings)},
                     {"buffers", fault::each(20e6, buffers)},
                     {"words", fault::each(16e6, words_of)}});
}
