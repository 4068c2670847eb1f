// SPDX-License-Identifier: MIT
// The measuring functions of this folder's scenarios. Nothing here comes from the malloc under test: tables are shared
// mappings, which /proc counts apart from private memory, and /proc is read into buffers on the stack.
#pragma once
#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tests/stress/scenarios/scenario.hpp"
#include "tests/support/pattern.hpp"

namespace freehold::test {

inline const std::string& word(const Arguments& arguments, std::size_t i) {
  require(i < arguments.size(), "too few arguments");
  return arguments[i];
}

// Private memory that is resident: the heap, the stacks, written data of libraries.
inline double private_mib() { return memory_mib("/proc/self/status", "\nRssAnon:"); }

// Calls visit(line) for each line of a file, without allocating.
template <class Visit>
void for_each_line(const char* file, Visit&& visit) {
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  require(fd >= 0, file);
  std::array<char, 4096> text;
  std::array<char, 1024> line;
  std::size_t length = 0;
  for (ssize_t n; (n = ::read(fd, text.data(), text.size())) > 0;)
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      if (text[i] != '\n') {
        if (length < line.size() - 1) line[length++] = text[i];
        continue;
      }
      line[length] = '\0';
      visit(line.data());
      length = 0;
    }
  ::close(fd);
}

inline std::size_t count_mappings() {
  std::size_t lines = 0;
  for_each_line("/proc/self/maps", [&](const char*) { ++lines; });
  return lines;
}

// MiB of private writable mappings: what strict overcommit accounts.
inline double private_writable_mib() {
  double total = 0;
  for_each_line("/proc/self/maps", [&](const char* line) {
    unsigned long from = 0, to = 0;
    char access[8] = {};
    if (std::sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && access[1] == 'w' && access[3] == 'p')
      total += static_cast<double>(to - from) / static_cast<double>(kMiB);
  });
  return total;
}

// The ids of this process's threads. Uses getdents64 itself: opendir() would allocate.
inline std::size_t list_threads(pid_t* out, std::size_t capacity) {
  const int fd = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(fd >= 0, "/proc/self/task");
  alignas(8) char buffer[8192];
  std::size_t found = 0;
  for (long n; (n = ::syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < n;) {
      unsigned short length = 0;
      std::memcpy(&length, buffer + at + 16, sizeof length);
      const char* name = buffer + at + 19;
      if (name[0] != '.' && found < capacity) out[found++] = static_cast<pid_t>(std::atoi(name));
      at += length;
    }
  ::close(fd);
  return found;
}
inline std::size_t count_threads() {
  pid_t all[256];
  return list_threads(all, 256);
}

inline double seconds_of(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
inline double cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
inline double wall_seconds() { return seconds_of(CLOCK_MONOTONIC); }

inline void* allocate_written(std::size_t bytes) {
  void* p = CApi::allocate(bytes);
  require(p != nullptr, "no memory");
  std::memset(p, 1, bytes);
  return p;
}

// A thread of the program's own, which sleeps for ever; returns its id.
inline pid_t start_sleeper() {
  static std::atomic<pid_t> id;
  id = 0;
  std::thread([] {
    CApi::deallocate(allocate_written(100));
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    for (;;) ::pause();
  }).detach();
  while (id == 0) ::usleep(1000);
  return id;
}

// The ids of threads that are neither this one nor `own`.
inline std::size_t list_extra(pid_t own, std::array<pid_t, 256>& out) {
  const std::size_t n = list_threads(out.data(), out.size());
  const auto mine = static_cast<pid_t>(::syscall(SYS_gettid));
  const auto end = std::remove_if(out.begin(), out.begin() + n, [=](pid_t id) { return id == own || id == mine; });
  return static_cast<std::size_t>(end - out.begin());
}

// How often the system took the CPU away from this thread.
inline long preemptions() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// How long single calls took: a histogram with four steps an octave, and the worst. Of a call during which the system took
// the CPU away, only the CPU time counts: other programs made it long. Waiting for a lock counts.
class Latencies {
 public:
  template <class Call>
  auto time(Call&& call) {
    const long before = preemptions();
    const double wall = wall_seconds(), cpu = cpu_seconds();
    auto result = call();
    const double wall_after = wall_seconds(), cpu_after = cpu_seconds();
    const bool slow = wall_after - wall > 1e-3;
    add(slow && preemptions() != before ? cpu_after - cpu : wall_after - wall, cpu_after - cpu);
    return result;
  }
  void add(double seconds, double cpu) {
    ++count_;
    cpu_total_ += cpu;
    worst_ = std::max(worst_, seconds);
    worst_cpu_ = std::max(worst_cpu_, cpu);
    ++steps_[step_of(seconds)];
  }
  [[nodiscard]] double worst_ms() const { return worst_ * 1e3; }
  [[nodiscard]] double worst_cpu_ms() const { return worst_cpu_ * 1e3; }
  [[nodiscard]] double mean_cpu_us() const { return count_ != 0 ? cpu_total_ / static_cast<double>(count_) * 1e6 : 0; }
  void print(const char* what) const {
    static constexpr double kShares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
    std::printf("# %s: %zu calls, mean %.2f us of CPU;", what, count_, mean_cpu_us());
    for (const double share : kShares) std::printf(" p%g %.1f us", share * 100, quantile(share) * 1e6);
    std::printf("; worst %.3f ms (%.3f ms of CPU)\n", worst_ms(), worst_cpu_ms());
    std::fflush(stdout);
  }

 private:
  static constexpr std::size_t kSteps = 160;
  static std::size_t step_of(double seconds) {
    const double nanoseconds = std::max(1.0, seconds * 1e9);
    return std::min<std::size_t>(kSteps - 1, static_cast<std::size_t>(4 * __builtin_log2(nanoseconds)));
  }
  [[nodiscard]] double quantile(double share) const {
    std::size_t left = static_cast<std::size_t>(share * static_cast<double>(count_));
    for (std::size_t i = 0; i < kSteps; ++i) {
      if (steps_[i] > left) return __builtin_exp2(static_cast<double>(i + 1) / 4) * 1e-9;
      left -= steps_[i];
    }
    return worst_;
  }
  std::array<std::size_t, kSteps> steps_{};
  std::size_t count_ = 0;
  double cpu_total_ = 0, worst_ = 0, worst_cpu_ = 0;
};

}  // namespace freehold::test
