// SPDX-License-Identifier: MIT
// Counts calls of functions in programs that run, by the kernel's probes (uprobes as perf events). Nothing of the programs
// is changed that they could see; each call costs them a microsecond or two while it is counted. Not allowed everywhere: it
// takes root, CAP_PERFMON or a low kernel.perf_event_paranoid.
//
// Events are opened for each thread that is found, never inherited: the kernel reads the path of an inherited uprobe from
// the new thread's memory, where it is not, and lets clone() fail. So what a thread does before it is found is not counted;
// shares are not touched by that, as all groups of functions are counted in the same threads at the same time.
//
// One thread. Counting ends with the object.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/own_malloc.hpp"

namespace freehold::doctor {

class CallCounter {
 public:
  // Each group is counted apart; one may be empty.
  explicit CallCounter(std::vector<std::set<FunctionPlace>> groups) : groups_(std::move(groups)), events_(groups_.size()) {}
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;
  ~CallCounter();

  // Begins to count in the threads of these processes that are new. No more than kMostEvents are opened.
  void look(const std::vector<pid_t>& processes);
  // Calls so far, of each group.
  [[nodiscard]] std::vector<std::uint64_t> calls() const;
  // Why nothing is counted; empty: something is, or there was no thread yet.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  static constexpr std::size_t kMostEvents = 600;  // each needs a file; a process has a thousand of them, as a rule

 private:
  bool open(pid_t thread);

  std::vector<std::set<FunctionPlace>> groups_;
  std::vector<std::vector<int>> events_;  // of each group
  std::set<pid_t> threads_;
  std::size_t opened_ = 0;
  std::string why_;
};

}  // namespace freehold::doctor
