// SPDX-License-Identifier: MIT
// Observations of a program in /proc while it runs: its threads, the CPUs that it allowed itself, the files it is made of.
// Looks at the program and all its descendants. One thread; a look costs about 20 us for each thread that there is to see.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace freehold::doctor {

// A process and its descendants, itself first. Those that left the family (daemons) are not among them, unless they are, or
// descend from, `adopted`.
[[nodiscard]] std::vector<pid_t> family_of(pid_t root, const std::vector<pid_t>& adopted = {});
// The system's numbers of its threads; empty: it has ended, or may not be looked at.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);
// A thread of its that has not ended: its first, or where that has (pthread_exit), another. The kernel shows the process's
// memory under the number of such a thread alone. 0: there is none, so it has ended.
[[nodiscard]] pid_t thread_with_memory(pid_t process);
// The text of its /proc/PID/maps; empty: it has ended, or may not be looked at.
[[nodiscard]] std::string maps_of(pid_t process);
// The system call that a thread sleeps in, as /proc says it: "202 0x7f… 0x80 … stack-pointer program-counter"; "running".
// Empty: it has ended, or may not be looked at.
[[nodiscard]] std::string sleeping_call_of(pid_t process, pid_t thread);
// How often a thread has gone to sleep of its own accord; 0 also if it has ended.
[[nodiscard]] std::uint64_t sleeps_of(pid_t process, pid_t thread);
// Whether a socket of the family's waits for connections: TCP or local.
[[nodiscard]] bool listens(pid_t root);

class Watch {
 public:
  explicit Watch(pid_t root) : root_(root) {}

  void look();
  // The time of the first process's first thread, also when it has ended and was not waited for yet.
  void look_at_times_of_root();
  // Time that the family's threads had a CPU, and that they waited for one while they were ready to run, as far as was seen:
  // what a thread had after the last look at it is missing.
  struct Times {
    double ran_s = 0;
    double waited_s = 0;
  };
  [[nodiscard]] Times times() const noexcept { return times_; }
  // CPUs that running threads might use in at least a tenth of the looks; 0: none was seen running.
  [[nodiscard]] unsigned own_cpus() const;
  // Share of the looks in which a thread was ready to run, or ran; none: there were too few.
  [[nodiscard]] std::optional<double> ready_share() const;
  [[nodiscard]] unsigned most_threads() const noexcept { return most_threads_; }
  // Files that were mapped as code.
  [[nodiscard]] const std::set<std::string>& files() const noexcept { return files_; }

 private:
  void add_files(pid_t pid);
  void add_times(int task, const std::string& folder);

  pid_t root_;
  unsigned looks_ = 0;
  unsigned looks_at_running_ = 0;
  unsigned looks_at_ready_ = 0;
  unsigned most_threads_ = 0;
  std::vector<unsigned> allowed_;  // by CPU: looks in which a running thread might use it
  std::set<std::string> files_;
  Times times_;
  std::map<int, Times> times_of_;  // by thread, as last seen
};

}  // namespace freehold::doctor
