// SPDX-License-Identifier: MIT
// Shared by the macro rows: the description of a row, threads that start together and are timed, and helpers that keep the
// compiler from removing the work. A row measures malloc as a program sees it, so nothing here may allocate
// through malloc while the clock runs: tables come straight from mmap.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <latch>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace freehold::bench {

struct Outcome {
  std::uint64_t operations = 0;  // allocate+free pairs
  double seconds = 0;            // from the first thread's start to the last one's end
  std::uint64_t check = 0;       // depends on the work done; zero means that it was not done
};

struct Row {
  const char* name;
  const char* summary;
  Outcome (*run)(double scale);  // scale 1: the full size
};

[[noreturn]] inline void give_up(const char* why) {
  std::fprintf(stderr, "malloc_rows: %s\n", why);
  std::abort();
}

// The compiler must believe that `pointer` and all memory are used here; otherwise it removes a malloc whose block is never
// read.
inline void keep(void* pointer) { asm volatile("" : : "r"(pointer) : "memory"); }

inline void* must(void* block) {
  if (block == nullptr) give_up("malloc failed");
  return block;
}

inline std::uint64_t scaled(double scale, std::uint64_t count) {
  const auto n = static_cast<std::uint64_t>(scale * static_cast<double>(count));
  return n == 0 ? 1 : n;
}

// xorshift64*: a few instructions, so that the generator does not hide the allocator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x1234567u) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(((next() >> 32) * bound) >> 32); }
  // Uniform in the logarithm: as many blocks between 16 and 32 bytes as between 16 and 32 KiB. Bounds are powers of two.
  std::size_t log_size(unsigned low_log2, unsigned high_log2) {
    const unsigned exponent = low_log2 + static_cast<unsigned>(below(high_log2 - low_log2));
    return (std::size_t{1} << exponent) + below(std::size_t{1} << exponent);
  }

 private:
  std::uint64_t state_;
};

// An array outside malloc. Its pages are touched before the clock starts.
template <class T>
class Table {
 public:
  explicit Table(std::size_t size) : size_(size) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) give_up("mmap failed");
    data_ = static_cast<T*>(memory);
  }
  ~Table() {
    if (data_ != nullptr) munmap(data_, bytes());
  }
  Table(Table&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  Table& operator=(Table&&) = delete;

  T& operator[](std::size_t index) { return data_[index]; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  T* data_ = nullptr;
  std::size_t size_;
};

// Binds the calling thread to the nth of the CPUs that it may use, counted round. For rows about traffic between CPUs:
// without it the scheduler decides from run to run whether there is any.
inline void pin_to_cpu(unsigned nth) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  nth %= static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || nth-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

using Clock = std::chrono::steady_clock;

// Runs `work(thread)` on `threads` threads that start together after each has run `prepare(thread)`. Returns the time from
// the first start to the last end; thread creation and exit are outside.
template <class Prepare, class Work>
double run_threads(unsigned threads, Prepare prepare, Work work) {
  std::latch ready(threads);
  std::mutex mutex;
  Clock::time_point first = Clock::time_point::max();
  Clock::time_point last = Clock::time_point::min();
  auto body = [&](unsigned thread) {
    prepare(thread);
    ready.arrive_and_wait();
    const auto start = Clock::now();
    work(thread);
    const auto end = Clock::now();
    std::scoped_lock lock(mutex);
    if (start < first) first = start;
    if (end > last) last = end;
  };
  std::vector<std::thread> pool;
  pool.reserve(threads);
  for (unsigned t = 0; t < threads; ++t) pool.emplace_back(body, t);
  for (auto& thread : pool) thread.join();
  return std::chrono::duration<double>(last - first).count();
}
// The same for threads that have nothing to prepare.
template <class Work>
double run_threads(unsigned threads, Work work) {
  return run_threads(threads, [](unsigned) {}, work);
}

inline std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

// `PROGRAM NAME [SCALE]` runs the row of that name, `PROGRAM --list` names all of them. Returns the exit code.
template <class Row>
int row_main(const char* program, std::initializer_list<std::span<const Row>> all, int (*run)(const Row& row, double scale),
             int argc, char** argv) {
  const bool list = argc == 2 && std::strcmp(argv[1], "--list") == 0;
  const double scale = argc == 3 ? std::atof(argv[2]) : 1.0;
  for (const auto& rows : all)
    for (const Row& row : rows) {
      if (list) std::printf("%s\t%s\n", row.name, row.summary);
      if (!list && (argc == 2 || argc == 3) && scale > 0 && std::strcmp(row.name, argv[1]) == 0) return run(row, scale);
    }
  if (list) return 0;
  std::fprintf(stderr, "usage: %s NAME [SCALE] | --list\n", program);
  return 2;
}

// Each file of rows lists its own.
using Rows = std::span<const Row>;

Rows pair_rows();
Rows ring_rows();
Rows list_rows();
Rows churn_rows();
Rows large_rows();
Rows program_like_rows();

}  // namespace freehold::bench
