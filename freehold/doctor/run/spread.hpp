// SPDX-License-Identifier: MIT
// A program that runs before others (precedence.hpp) may have two threads on one CPU all the same while others have the
// rest. If no CPU is idle, the kernel wakes a thread beside the one that woke it. It moves threads from a busy CPU to
// another only after some tenths of a second. Without others each thread would find an idle CPU at once.
#pragma once
#include <sched.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <vector>

namespace freehold::doctor {

// One thread. Errors: none; a thread that ends meanwhile is passed over. Cost: about 30 us for each of its threads.
class Spread {
 public:
  explicit Spread(pid_t root);

  // Call it every few milliseconds. If the program has no more threads than CPUs beside the first one of each process,
  // each of these stays on a CPU that it shares with none of them. Other threads that are ready to run are moved from CPUs
  // with several of them to CPUs with none, and may use the same CPUs as before: a first thread asks how many there are. A
  // program that chooses its threads' CPUs itself is left alone.
  void look();

  static constexpr double kEvery_s = 0.005;

 private:
  struct Thread {
    pid_t id;
    bool is_first;
    std::optional<unsigned> ready_on;  // the CPU; none: it sleeps
  };
  using Keep = std::map<pid_t, std::optional<unsigned>>;  // the CPU on which a thread is kept; none: it is new

  [[nodiscard]] std::vector<Thread> threads() const;
  [[nodiscard]] bool knows(const Thread& thread, Keep& now);
  void keep_apart(Keep& now) const;
  void let_all_go();
  void move_ready(const std::vector<Thread>& threads) const;

  pid_t root_;
  cpu_set_t allowed_;  // to the program, when it started
  bool is_left_alone_;
  Keep kept_;
};

}  // namespace freehold::doctor
