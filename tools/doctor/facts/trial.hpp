// SPDX-License-Identifier: MIT
// One run of the program under examination, and what it cost. Plain data: what runs programs fills it, the analysis reads
// it.
#pragma once
#include <cstdint>
#include <optional>

namespace freehold::doctor {

inline constexpr double kTick_s = 0.01;  // a step of the kernel's count of CPU time, by which it tells what others took

// How a run ended, and what it took. Times in seconds, sizes in bytes; of the program and all children that it waited for.
struct Trial {
  double wall_s = 0;
  double user_s = 0;
  double system_s = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t page_faults = 0;           // page faults that no disk was read for
  std::uint64_t voluntary_switches = 0;    // number of times that it waited for something
  std::uint64_t involuntary_switches = 0;  // number of times that its CPU was given to somebody else
  double stolen_s = 0;                     // CPU time that others took while it ran: the host of the virtual machine, and
                                           // other processes on its CPUs
  double taken_s = 0;                  // part of stolen_s that the program would have used: its threads were ready to run
  std::optional<double> ready_share;   // share of the looks at it in which a thread was ready or ran; none: too few looks
  std::optional<double> apart_share;   // share of the CPUs beside the first that its ready threads might have had on which
                                       // looks found them; none: no look found two ready
  std::optional<double> run_delay_s;   // seconds that its threads were ready to run and had no CPU, whoever had it; none:
                                       // most of their time was not seen
  std::optional<unsigned> own_cpus;    // number of CPUs that its threads allowed themselves; none: not seen
  double throttled_s = 0;              // time that its control group's quota kept it from running
  std::optional<double> instructions;  // instructions of the program, the kernel's left out; none: no counter is there
                                       // or permitted
  std::optional<double> throughput;    // units a second that its load reported; the higher the better
  int wait_status = 0;                 // status as waitpid gives it
  std::optional<unsigned> round;       // round of the examination; 0: its first run; none: not known

  [[nodiscard]] double cpu_s() const noexcept { return user_s + system_s; }
  // Returns the seconds for the work, or for a unit of it, by which scaling is judged.
  [[nodiscard]] double cost() const noexcept { return throughput && *throughput > 0 ? 1 / *throughput : wall_s; }
};

}  // namespace freehold::doctor
