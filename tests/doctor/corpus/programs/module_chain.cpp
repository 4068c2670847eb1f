// SPDX-License-Identifier: MIT
// A build of many modules: each takes the interfaces of the one before it, so that hardly any two are compiled at the same
// time. People with many cores found that the build runs one module after the other.
#include <condition_variable>
#include <mutex>
#include <string>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
// Reads a text that was made up into words, as a compiler does.
std::size_t compile(unsigned seed) {
  std::size_t bytes = 0;
  for (int part = 0; part < 40; ++part) {
    std::vector<std::string> words;
    for (int i = 0; i < 1000; ++i) words.push_back("name_of_something_" + std::to_string(rebuilt::chance(seed) % 5000));
    for (const std::string& word : words) bytes += word.size();
  }
  return bytes;
}
}  // namespace

int main(int argc, char** argv) {
  const int modules = argc > 2 ? std::atoi(argv[2]) : 100;
  std::mutex mutex;
  std::condition_variable ready;
  int started = 0, built = 0;
  rebuilt::in_threads(argc, argv, [&](unsigned, long) {
    for (;;) {
      std::unique_lock lock(mutex);
      const int module = started++;
      if (module >= modules) return;
      ready.wait(lock, [&] { return built >= module; });
      lock.unlock();
      rebuilt::keep(compile(static_cast<unsigned>(module)));
      lock.lock();
      ++built;
      ready.notify_all();
    }
  });
}
