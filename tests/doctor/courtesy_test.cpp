// SPDX-License-Identifier: MIT
// A run leaves other processes their CPU time; how late one comes that wakes often is printed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/precedence.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {
namespace {

TEST(Courtesy, NiceFor_ThreadsWeighLessThanOneOnEachCpu) {
  for (const unsigned cpus : {1U, 2U, 8U})
    for (const unsigned ready : {0U, 1U, 2U, 3U, 8U, 20U, 60U, 100U}) {
      const int nice = Courtesy::nice_for(ready, cpus);
      EXPECT_TRUE(nice == 19 || ready * std::pow(1.25, -nice) < 0.82 * cpus) << ready << " on " << cpus;
      EXPECT_TRUE(nice == 0 || ready * std::pow(1.25, 1 - nice) > 0.8 * cpus) << ready << " on " << cpus;
      EXPECT_LE(nice, 19);
    }
}

// A process that keeps a CPU busy.
class Busy {
 public:
  Busy() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) asm volatile("");
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] double cpu_s() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(pid_, &clock) == 0) ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  pid_t pid_;
};

// Measures how late a process comes that wakes every 2 ms, and the CPU time of busy ones.
class Notices {
 public:
  void look(const std::vector<Busy>& others, double seconds) {
    constexpr double kEvery_s = 0.002;
    const double begin = now_s();
    for (const Busy& other : others) had_s_ -= other.cpu_s();
    for (double due = begin + kEvery_s; due < begin + seconds; due = std::max(due, now_s()) + kEvery_s) {
      const timespec at{static_cast<time_t>(due), static_cast<long>(std::fmod(due, 1) * 1e9)};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
      late_s_.push_back(now_s() - due);
    }
    for (const Busy& other : others) had_s_ += other.cpu_s();
    seconds_ += now_s() - begin;
  }
  // The 99th percentile.
  [[nodiscard]] double late_s() const {
    std::vector<double> sorted = late_s_;
    std::ranges::sort(sorted);
    return sorted[sorted.size() * 99 / 100];
  }
  [[nodiscard]] double cpus() const { return had_s_ / seconds_; }

 private:
  std::vector<double> late_s_;
  double had_s_ = 0, seconds_ = 0;
};

struct Beside {
  Notices without, with;
};

// Four times as many busy processes as CPUs are the program. In turns without it and with it, since other processes come and
// go, too.
Beside beside_a_run(bool before_others) {
  constexpr int kTurns = 4;
  constexpr double kTurn_s = 1, kBegin_s = 0.3;
  const std::size_t cpus = cpus_in_order().size();
  const std::vector<Busy> others(cpus);
  const std::string spin = "for i in $(seq " + std::to_string(4 * cpus) + "); do while :; do :; done & done; wait";
  const Command program{
      .file = "/bin/sh", .arguments = {"sh", "-c", spin}, .before_others = before_others, .real_time = false};
  Beside noticed;
  for (int turn = 0; turn < kTurns; ++turn) {
    noticed.without.look(others, kTurn_s);
    const pid_t doctor = ::fork();
    if (doctor == 0) {
      Host host;
      sigemptyset(&host.mask);
      static_cast<void>(run(program, {}, kTurn_s + 2 * kBegin_s, host));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(1e6 * kBegin_s));
    noticed.with.look(others, kTurn_s);
    ::waitpid(doctor, nullptr, 0);
  }
  std::printf("without: %.2f CPUs, late by %.2f ms; with: %.2f CPUs, late by %.2f ms\n", noticed.without.cpus(),
              1e3 * noticed.without.late_s(), noticed.with.cpus(), 1e3 * noticed.with.late_s());
  return noticed;
}

TEST(Courtesy, ManyThreadsBesideABusyMachine_OthersKeepHalf) {
  const Beside noticed = beside_a_run(false);
  EXPECT_GE(noticed.with.cpus(), 0.5 * noticed.without.cpus());
}

// This is the purpose of --ahead-of-others. It also shows that the bound above can be exceeded.
TEST(Precedence, ManyThreadsBesideABusyMachine_OthersAreLeftLittle) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may go before others for certain.";
  const Beside noticed = beside_a_run(true);
  EXPECT_LT(noticed.with.cpus(), 0.5 * noticed.without.cpus());
}

}  // namespace
}  // namespace freehold::doctor
