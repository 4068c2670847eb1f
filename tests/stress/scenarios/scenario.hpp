// SPDX-License-Identifier: MIT
// A scenario is a small program with one subject, run in a separate process: with Freehold preloaded, linked, or not at all,
// under limits, with a deadline. It ends with exit code 0, or with one line that says what was wrong. Figures go to standard
// output as "name number" and are judged by the test that started it.
#pragma once
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_api.hpp"
#include "tests/support/trace.hpp"

namespace freehold::test {

using Arguments = std::vector<std::string>;
using Body = void (*)(const Arguments&);

// Name to body, filled before main.
inline std::map<std::string, Body>& scenarios() {
  static std::map<std::string, Body> all;
  return all;
}
struct Registered {
  Registered(const char* name, Body body) { scenarios()[name] = body; }
};

#define SCENARIO(name)                                                                 \
  static void scenario_##name(const Arguments&);                                       \
  static const ::freehold::test::Registered registered_##name(#name, scenario_##name); \
  static void scenario_##name([[maybe_unused]] const Arguments& arguments)

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "scenario failed: %s\n", what.c_str());
  std::_Exit(1);
}
inline void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}
inline void require(bool condition, const char* what) {  // makes no string: memory may have run out
  if (!condition) fail(what);
}

inline std::size_t number(const Arguments& arguments, std::size_t i) {
  require(i < arguments.size(), "too few arguments");
  return std::strtoull(arguments[i].c_str(), nullptr, 0);
}
// How often, by the test; `usual` if it does not say.
inline unsigned count_of(const Arguments& arguments, unsigned usual) {
  return arguments.empty() ? usual : static_cast<unsigned>(std::strtoul(arguments[0].c_str(), nullptr, 10));
}

inline void figure(const char* name, double value) {
  std::printf("%s %.3f\n", name, value);
  std::fflush(stdout);
}

inline constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

// A field of /proc/self/…, in MiB; reads without allocating.
inline double memory_mib(const char* file, const char* field) {
  static char text[8192];
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  require(fd >= 0, file);
  std::size_t size = 0;
  for (ssize_t n; size < sizeof text - 1 && (n = ::read(fd, text + size, sizeof text - 1 - size)) > 0;)
    size += static_cast<std::size_t>(n);
  ::close(fd);
  text[size] = '\0';
  const char* found = std::strstr(text, field);
  require(found != nullptr, field);
  return static_cast<double>(std::strtoull(found + std::strlen(field), nullptr, 10)) / 1024;
}
inline double resident_mib() { return memory_mib("/proc/self/smaps_rollup", "\nRss:"); }
inline double peak_mib() { return memory_mib("/proc/self/status", "\nVmHWM:"); }

// The scenarios' own tables do not come from the malloc that they judge, are resident before the first figure, and shared,
// which /proc counts apart from private memory.
template <class T>
class Table {
 public:
  explicit Table(std::size_t n) : size_(n) {
    void* p = ::mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    require(p != MAP_FAILED, "mmap of a table");
    data_ = static_cast<T*>(p);
  }
  ~Table() { ::munmap(data_, size_ * sizeof(T)); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  T& operator[](std::size_t i) { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  T* data_;
  std::size_t size_;
};

// Allocates, checks, resizes and frees at random over every kind of size, for as long as it is asked.
class Churn {
 public:
  explicit Churn(std::uint64_t seed, std::size_t slots = 200, std::size_t max_bytes = 256 * kKiB)
      : steps_(seed, max_bytes), blocks_(slots) {}
  ~Churn() { release_all(); }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  void run(std::size_t operations) {
    for (std::size_t i = 0; i < operations; ++i) step();
  }
  void step() {
    Block& block = blocks_[steps_.random().below(blocks_.size())];
    std::string error;
    if (block.address == nullptr)
      error = steps_.allocate(block);
    else if (steps_.random().below(4) == 0)
      error = steps_.reallocate(block);
    else
      error = steps_.release(block);
    if (!error.empty()) fail(error);
  }
  void check_all() {
    for (const Block& block : blocks_)
      if (block.address != nullptr && !steps_.check(block).empty()) fail(steps_.check(block));
  }
  void release_all() {
    for (Block& block : blocks_)
      if (block.address != nullptr)
        if (const std::string error = steps_.release(block); !error.empty()) fail(error);
  }

 private:
  Steps<CApi> steps_;
  std::vector<Block> blocks_;
};

// Threads that repeat something until they are told to stop.
class Background {
 public:
  template <class Work>
  void add(unsigned threads, Work work) {
    for (unsigned t = 0; t < threads; ++t)
      threads_.emplace_back([this, work] {
        while (!stop_.load(std::memory_order_relaxed)) work();
      });
  }
  ~Background() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Threads that churn until it ends.
class Load : Background {
 public:
  explicit Load(unsigned threads) {
    for (unsigned t = 0; t < threads; ++t) add(1, [churn = std::make_shared<Churn>(1000 + t)] { churn->run(50); });
  }
};

// Threads with stacks of a given size: thousands of threads shall not be about stacks, nor limits of memory.
class SmallStacks {
 public:
  explicit SmallStacks(std::size_t bytes) {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_, bytes);
  }
  ~SmallStacks() { pthread_attr_destroy(&attributes_); }
  pthread_t start(void* (*body)(void*), void* argument) {
    pthread_t thread;
    require(pthread_create(&thread, &attributes_, body, argument) == 0, "pthread_create");
    return thread;
  }

 private:
  pthread_attr_t attributes_;
};

// Runs work(0) … work(n - 1), each in a separate thread, and joins them.
inline void in_threads(unsigned n, const std::function<void(unsigned)>& work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < n; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
}

}  // namespace freehold::test
