// SPDX-License-Identifier: MIT
// The order of an examination's runs: its tasks, how often each has run and how long it took, and which still fit into the
// time.
//
// The first round goes by importance, so that an early end leaves the most, up to what is recorded: that may show that some
// treatments need not be tried. The others begin with the recordings, and shuffle the rest, so that a machine that becomes
// slower becomes so for every treatment alike. One thread.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "tools/doctor/run/plan.hpp"

namespace freehold::doctor {

class Schedule {
 public:
  struct Effort {
    double budget_s = 0;                          // for all runs
    double grace_s = 0;                           // on top of that, for the end of the last one
    unsigned rounds = 0;                          // instead of a budget; 0: the budget decides
    bool serves = false;                          // a server's runs take the same time, whatever its CPUs
    double began_s = 0;                           // on the clock of now_s()
    double first_elapsed_s = 0, first_cpu_s = 0;  // of the first run, on all CPUs
  };

  Schedule() = default;
  Schedule(std::vector<Task> tasks, std::vector<Goal> goals, const Effort& effort);

  [[nodiscard]] const std::vector<Task>& tasks() const noexcept { return tasks_; }
  [[nodiscard]] std::optional<std::size_t> index_of(const Task& task) const;
  [[nodiscard]] unsigned done(std::size_t task) const { return done_[task]; }

  // Seconds that a run of the task will take.
  [[nodiscard]] double estimate(std::size_t task) const;
  // Runs that each task shall have in the end, as far as time allows now.
  [[nodiscard]] std::vector<unsigned> targets() const;
  // Seconds until these targets are reached.
  [[nodiscard]] double seconds_left(const std::vector<unsigned>& targets) const;
  // Tasks of the round, in their order; empty: everything is done, or time is up.
  [[nodiscard]] std::vector<std::size_t> order_of_round(unsigned round) const;

  // A run of the task is over. A run that other processes disturbed counts, but is repeated while there is time.
  void count(std::size_t task, double elapsed_s, bool was_disturbed = false);
  // Seconds of the budget that are left.
  [[nodiscard]] double time_left() const;
  // Seconds after which a run of the task that has not ended is none. The budget waits for the end of one that takes half as
  // long again as expected, if that is within its grace.
  [[nodiscard]] double in_time(std::size_t task) const;
  // Returns whether any task might still be run.
  [[nodiscard]] bool has_time() const;
  // True if all that a verdict needs at least was run, or cannot be for want of time.
  [[nodiscard]] bool can_decide() const;
  // Adds `runs` more of these variants at both ends of the sweep, and of the copies, which come before all else. False:
  // there is no time for any.
  bool run_again(const std::vector<std::size_t>& variants, unsigned runs);
  // Other goals from now on, but none for a task that was given up.
  void replan(std::vector<Goal> goals);
  // The task would fail again, perhaps only at its timeout.
  void give_up(std::size_t task);

 private:
  // The time that the runs of a task took. One that others held up says little of the next, which may go before them.
  class Elapsed {
   public:
    void add(double seconds, bool was_disturbed) {
      least_s_ = least_s_ > 0 ? std::min(least_s_, seconds) : seconds;
      if (was_disturbed) return;
      sum_s_ += seconds;
      ++runs_;
    }
    [[nodiscard]] double expected_s() const { return runs_ > 0 ? sum_s_ / runs_ : least_s_; }

   private:
    double sum_s_ = 0, least_s_ = 0;
    unsigned runs_ = 0;  // that were not disturbed
  };
  // The first run may have waited for others: no run takes more CPU time than its CPUs have.
  void note_faster_than_first(std::size_t task, double elapsed_s);

  std::vector<Task> tasks_;
  std::vector<Goal> goals_;
  std::vector<Goal> first_;  // of these: rounds have nothing else until they are reached
  Effort effort_;
  std::vector<unsigned> done_;     // by task
  std::vector<Elapsed> elapsed_;   // by task
  std::vector<unsigned> repeats_;  // by task, because others disturbed it
};

}  // namespace freehold::doctor
