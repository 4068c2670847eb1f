// SPDX-License-Identifier: MIT
// A preloaded `true` takes at most 0.3 ms and 1 MiB more than one without. Runs with and without are interleaved; the
// difference of the lower quartiles counts, since whatever else the machine does only adds.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace {

struct Cost {
  double milliseconds;
  long peak_kib;
};

Cost run_true(const std::string& variable) {
  char program[] = "/bin/true";
  char* argv[] = {program, nullptr};
  std::string environment = variable;
  char* envp[] = {environment.data(), nullptr};
  const auto start = std::chrono::steady_clock::now();
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, program, nullptr, nullptr, argv, envp), 0);
  int status = -1;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(status, 0);
  return {took.count(), usage.ru_maxrss};
}

template <class T>
T lower_quartile(std::vector<T> values) {
  const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

TEST(Startup, PreloadedTrue_AgainstPlainTrue_CostsLittle) {
  constexpr int kRuns = 400;
  std::vector<double> plain_ms, preloaded_ms;
  std::vector<long> plain_kib, preloaded_kib;
  for (int i = 0; i < kRuns; ++i) {
    const Cost plain = run_true("UNRELATED=1");
    const Cost preloaded = run_true("LD_PRELOAD=" FREEHOLD_LIBRARY);
    plain_ms.push_back(plain.milliseconds);
    preloaded_ms.push_back(preloaded.milliseconds);
    plain_kib.push_back(plain.peak_kib);
    preloaded_kib.push_back(preloaded.peak_kib);
  }
  const double more_ms = lower_quartile(preloaded_ms) - lower_quartile(plain_ms);
  const long more_kib = lower_quartile(preloaded_kib) - lower_quartile(plain_kib);
  RecordProperty("more_microseconds", static_cast<int>(more_ms * 1000));
  RecordProperty("more_kib", static_cast<int>(more_kib));
  EXPECT_GT(more_ms, 0.0) << "nothing was preloaded";
  EXPECT_LE(more_ms, 0.3);
  EXPECT_LE(more_kib, 1024);
}

}  // namespace
