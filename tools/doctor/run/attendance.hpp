// SPDX-License-Identifier: MIT
// Children of one run: started, listened to, watched, ended. It also measures what the CPUs did for other processes in that
// time. Internal to program.cpp and service.cpp; busy_on() also serves the measuring commands.
#pragma once
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/code_sampler.hpp"
#include "tools/doctor/run/cpu_group.hpp"
#include "tools/doctor/run/event_count.hpp"
#include "tools/doctor/run/memory_watch.hpp"
#include "tools/doctor/run/precedence.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/watch.hpp"

namespace freehold::doctor {

inline constexpr double kGrace_s = 3;           // between SIGTERM and SIGKILL
inline constexpr double kGraceStopped_s = 0.3;  // the same, for a host that says stop

// CPU time that anybody had on some CPUs since boot, in steps of 10 ms.
struct Busy {
  double all_s = 0;
  double host_s = 0;  // of that, the host of this virtual machine
  friend Busy operator-(const Busy& a, const Busy& b) { return {a.all_s - b.all_s, a.host_s - b.host_s}; }
};
[[nodiscard]] Busy busy_on(const std::vector<unsigned>& cpus);
// True if others have a good part of these CPUs now. It sleeps for a tenth of a second.
[[nodiscard]] bool is_machine_busy(const std::vector<unsigned>& cpus);

[[nodiscard]] bool ended_well(const Trial& trial);
// The last lines of what was written, whole ones.
[[nodiscard]] std::string last_words_of(Child& child);
[[nodiscard]] std::vector<unsigned> cpus_of(std::span<const LaunchOptions> copies);

// While it lives, Ctrl-Z (SIGTSTP) does not stop this process before its children were told. It changes nothing for a caller
// that blocks the signal.
class Suspension {
 public:
  Suspension();
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;
  ~Suspension();

  // To poll: readable when this process is to stop; -1: never.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Stops until somebody says continue.
  void stop();

 private:
  sigset_t signal_{};
  int fd_ = -1;
};

// While it lives, processes that their parents left become children of this one. At its end they are killed.
class Adoption {
 public:
  Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;
  ~Adoption();

  // Children of this process that it did not have before: those that it started, and adopted ones.
  [[nodiscard]] std::vector<pid_t> new_children() const;

 private:
  std::vector<pid_t> own_;
  int before_ = 0;
};

// Time that a control group's quota took, also of a program that changed its group. Memberships are those of
// membership_of(); the empty one of a program that has ended changes nothing.
class Throttling {
 public:
  explicit Throttling(const std::string& membership, std::filesystem::path root = "/sys/fs/cgroup");
  void look(const std::string& membership);
  [[nodiscard]] double seconds() const { return earlier_s_ + group_->throttled_s() - began_s_; }
  [[nodiscard]] double quota_cpus() const { return group_->quota_cpus(); }

 private:
  void begin(const std::string& membership);

  std::filesystem::path root_;
  std::string membership_;
  std::optional<CpuGroup> group_;
  double began_s_ = 0;
  double earlier_s_ = 0;
};

// Waits for children, and looks at the first of them until they end.
class Attendance {
 public:
  // The host outlives this.
  explicit Attendance(const Host& host);

  Child& start(const Command& command, const LaunchOptions& options);
  void forget_last() { children_.pop_back(); }
  // Returns whether the host says stop.
  [[nodiscard]] bool stopped() const;

  // Seconds without those in which this process could not look after anything, because it was stopped itself.
  [[nodiscard]] double now() const { return now_s() - absent_s_; }
  [[nodiscard]] double absent_s() const noexcept { return absent_s_; }

  // Sleeps until something happens, `until` at the latest; attends to all children.
  void wait(double until);
  // Ends these children: SIGTERM, then SIGKILL. A host that says stop waits for less time.
  void end(std::span<Child* const> ending, double grace_s);
  void end_all();

  [[nodiscard]] bool any_up() const;
  [[nodiscard]] const std::vector<std::unique_ptr<Child>>& all() const { return children_; }

  [[nodiscard]] Watch::Times times() const { return watch_ ? watch_->times() : Watch::Times{}; }
  // Reports what was seen of the first child.
  void report(Run& run);

 private:
  void look();
  void look_at_priorities();
  // The threads of the program would go on before others, and this process would not look after them.
  void stop_with_children();
  // Descendants of the first child whose parents have ended.
  [[nodiscard]] std::vector<pid_t> adopted() const;
  // How many processes of the first child's run on though it has ended. Before it is waited for, as that ends its group.
  [[nodiscard]] unsigned left_processes() const;

  const Host& host_;
  Suspension suspension_;
  Adoption adoption_;  // outlives the children
  Throttling throttling_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<pid_t> started_;  // all that ever were in children_
  std::optional<Watch> watch_;
  std::optional<Courtesy> courtesy_;  // none: the run goes before others
  std::optional<RealTime> real_time_;
  EventCount first_event_;  // while there is one, further ones need not wait
  std::optional<CodeSampler> sampler_;
  std::optional<MemoryWatch> memory_;
  unsigned left_processes_ = 0;
  bool is_ending_ = false;  // the first child was told to end
  double pause_s_;
  double absent_s_ = 0;
  double next_look_s_;
  double next_real_time_s_ = HUGE_VAL;  // never
};

// Sets what others had of the CPUs during a run, and of that, what the program would have had: no more than its threads
// waited for CPUs. They wait for each other, too, where there are more of them than CPUs; a CPU that the program left idle
// was not taken from it. Where their waits were not seen, others took what they had while looks found a thread ready, and no
// more than the threads that were ready wanted beside what they had.
// `own_s`: CPU time of all `count` copies.
void add_stolen(Run& run, const Busy& busy, double own_s, double count, const Watch::Times& seen);
// A program that keeps `width` CPUs busy at most, or bound itself to fewer, wanted no more than those: where its threads
// wait for each other, others took nothing.
void hold_taken_to(Trial& trial, unsigned width);

}  // namespace freehold::doctor
