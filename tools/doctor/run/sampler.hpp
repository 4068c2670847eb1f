// SPDX-License-Identifier: MIT
// Where the threads of a running process spend their CPU time: perf events on a clock of each thread, a sample every
// millisecond of CPU time. The process is not stopped and nothing of it is changed. Of a sample in the kernel it is known
// from where in the program the kernel was entered, if the kernel permits looking there.
//
// One thread. Cost: about 10 us of CPU time for a sample, one hundredth.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace freehold::doctor {

class Sampler {
 public:
  explicit Sampler(double period_s = kPeriod_s) : period_s_(period_s) {}
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

  // Begins to sample the threads of these processes that are new; no more than kMostThreads at a time.
  void look(const std::vector<pid_t>& processes);
  // Hands over the samples since the last time: the program's own address. To be called every few dozen milliseconds.
  void drain(const std::function<void(std::uint64_t address)>& take);

  [[nodiscard]] bool sees_kernel() const noexcept { return sees_kernel_; }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  // Why nothing is sampled; empty: something is, or there was no thread yet.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  static constexpr std::size_t kMostThreads = 200;
  static constexpr double kPeriod_s = 1e-3;

 private:
  double period_s_;
  struct Event {
    int fd = -1;
    char* ring = nullptr;
  };
  [[nodiscard]] int open(pid_t thread);
  void drain(Event& event, const std::function<void(std::uint64_t)>& take);

  std::map<pid_t, Event> events_;
  bool sees_kernel_ = true;
  std::uint64_t lost_ = 0;
  std::string why_;
};

}  // namespace freehold::doctor
