// SPDX-License-Identifier: MIT
// The common part of the seeded faults: their command line, threads that divide a fixed amount of work, and work that needs
// a CPU and nothing else. Everything that a program of the suite does beside that is its fault.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <thread>
#include <vector>

namespace fault {

struct Options {
  unsigned threads = 4;
  double scale = 1;          // factor of the amount of work
  bool tells_parts = false;  // prints the seconds that its parts took, where it has some

  // A thread's part of the whole work, of which `amount` is done at scale 1.
  [[nodiscard]] std::size_t part(double amount) const { return static_cast<std::size_t>(amount * scale / threads); }
};

// Runs the program in one of its settings.
struct Setting {
  const char* name;
  std::function<void(const Options&)> work;
};

// prog [-t THREADS] [-n SCALE] [-p] SETTING. Returns the exit code: 2 if that is not what was typed.
inline int run(int count, char** words, std::initializer_list<Setting> settings, unsigned threads = 4) {
  Options made;
  made.threads = threads;
  for (int option; (option = getopt(count, words, "t:n:p")) != -1;) {
    if (option == 't') made.threads = static_cast<unsigned>(std::strtoul(optarg, nullptr, 10));
    if (option == 'n') made.scale = std::strtod(optarg, nullptr);
    if (option == 'p') made.tells_parts = true;
    if (option == '?') return 2;
  }
  for (const Setting& setting : settings)
    if (optind + 1 == count && made.threads > 0 && made.scale > 0 && std::strcmp(setting.name, words[optind]) == 0)
      return setting.work(made), 0;
  std::fprintf(stderr, "usage: %s [-t THREADS] [-n SCALE] [-p] SETTING; there are", words[0]);
  for (const Setting& setting : settings) std::fprintf(stderr, " %s", setting.name);
  return std::fputc('\n', stderr), 2;
}

// As many threads as the machine has CPUs, at least two, whichever of them the program may use.
inline unsigned machine_threads() {
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  return cpus > 2 ? static_cast<unsigned>(cpus) : 2;
}

// Runs body(0) .. body(threads - 1), each in a separate thread.
template <class Body>
void in_threads(unsigned threads, const Body& body) {
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) running.emplace_back(body, i);
  for (std::thread& thread : running) thread.join();
}

// The work of a setting in which each thread does its part of `amount`: body(its number, its part).
template <class Body>
auto each(double amount, Body body) {
  return [=](const Options& options) { in_threads(options.threads, [&](unsigned me) { body(me, options.part(amount)); }); };
}

// A pseudo-random sequence; one step takes about a nanosecond.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

// Makes the compiler believe that `value` is used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(value) : "memory");
}

// Work in registers alone: about a nanosecond a step.
inline void compute(std::size_t steps) {
  Random random(steps + 1);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < steps; ++i) sum += random();
  keep(sum);
}

}  // namespace fault
