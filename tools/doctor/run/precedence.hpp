// SPDX-License-Identifier: MIT
// The runs of an examination take a fair share of the CPUs beside other processes, or, if the user asks for that, nearly all
// of them (Precedence, RealTime). Those need CAP_SYS_NICE; without it nothing changes.
//
// Nice -20 leaves others 1% of a CPU. It is not enough where threads sleep and wake often: where no CPU is idle, the kernel
// wakes a thread beside the one that woke it, behind the slice of another process, and moves it to another CPU only after
// some tenths of a second. Threads with real-time priority find a CPU at once, as on a machine without others. They keep it
// until they sleep, so no more of them than CPUs may have it: else one would wait for another that spins for it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

namespace freehold::doctor {

inline constexpr int kNiceBeforeOthers = -20;

// True if a process other than this one is running now.
[[nodiscard]] bool others_run();

// Leaves others of this process's nice value more than half of the CPU time that they would have without a run: the run's
// threads that are ready have together less weight than one ordinary thread on each CPU that they may use. The nice value
// only rises, since to lower it again takes a privilege. The scheduler keeps that within milliseconds, so that nothing
// pauses, and on an idle machine the run is not slower. A thread that chose a greater nice value keeps it.
//
// Where threads share a CPU the kernel lets each run for some milliseconds before one that wakes gets its turn. A run asks
// for short slices, so that others are less late; the tick of the system still bounds that.
class Courtesy {
 public:
  static constexpr std::uint64_t kSlice_ns = 100'000;  // the kernel takes no less

  // To be called every few milliseconds with the run's first processes. Cost of a look: about 20 us for each thread.
  void look(std::span<const pid_t> roots);
  // Above that of this process. `ready`: threads that are ready or running; `cpus`: that these may use.
  [[nodiscard]] static int nice_for(unsigned ready, unsigned cpus) noexcept;

 private:
  int most_ = 0;  // of nice_for() so far
};

// While it is taken, the calling thread runs at nice -20, and so does its session where the kernel weighs that as one
// (autogroup): not in a control group, which has its own weight. The end gives back what was there. A child that does
// nothing else gives the session's weight back if the thread is killed, and while Ctrl-Z has stopped its process group.
class Precedence {
 public:
  Precedence() = default;
  Precedence(const Precedence&) = delete;
  Precedence& operator=(const Precedence&) = delete;
  ~Precedence();

  // Tries once. Returns whether it is taken.
  bool take();
  [[nodiscard]] bool is_taken() const noexcept { return taken_; }

 private:
  bool tried_ = false, taken_ = false;
  int nice_before_ = 0;
  std::string group_nice_before_;  // empty: the session has no group, or kept its weight
  pid_t keeper_ = -1;              // the child
};

// Gives the threads of a program's first process real-time priority while no more threads of the program run than may use
// CPUs at the same time; what that process starts is ordinary until the next look, and its descendants run at nice -20. A
// program that has other processes has none: its wait for one spins in the kernel until that one's last thread, which is
// ordinary, had the CPU. One that chooses its threads' priorities is left alone once that was seen. The calling thread gets
// a higher priority to look after them; its children do not inherit it. Real-time threads are not subject to a control
// group's quota.
//
// Ten times a second they are ordinary until the next look. Threads of the kernel, which are ordinary, end what the program
// waits for: a write to a file, a membarrier, the end of a child. Where real-time threads kept every CPU the system gave the
// others their turn once a second (sched_rt_runtime_us), and one fsync() took three.
// One thread. Cost of a look: about 30 us for each thread.
class RealTime {
 public:
  explicit RealTime(pid_t root);
  RealTime(const RealTime&) = delete;
  RealTime& operator=(const RealTime&) = delete;
  ~RealTime();

  // To be called every few milliseconds.
  void look();

  static constexpr double kLooksEvery_s = 0.005;
  static constexpr double kOthersTurnEvery_s = 0.1;

 private:
  pid_t root_;
  double others_had_turn_s_;
  bool is_left_alone_ = false;
};

}  // namespace freehold::doctor
