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

class Watch {
 public:
  explicit Watch(pid_t root) : root_(root) {}

  void look();
  // The time of the first process's first thread, also when it has ended and was not waited for yet.
  void look_at_times_of_root();
  // Time that the family's threads had a CPU, and that they waited for one while they were ready to run, as far as was seen:
  // what a thread had after the last look at it is missing. Looks see threads that live for moments as well as others.
  struct Times {
    double ran_s = 0;
    double waited_s = 0;
    double ready = 0;  // mean number of threads that were ready to run, or ran, at a look
  };
  [[nodiscard]] Times times() const noexcept;
  // CPUs that its threads might use in at least a tenth of the time in which they ran or were ready; 0: that was not seen.
  [[nodiscard]] unsigned own_cpus() const;
  // Share of the looks in which a thread was ready to run, or ran; none: there were too few.
  [[nodiscard]] std::optional<double> ready_share() const;
  // The share, of the CPUs that its ready threads might have had beside the first one, that they were on, or waited for: two
  // threads that others crowd onto one CPU never run at once. None: no look found two ready.
  [[nodiscard]] std::optional<double> apart_share() const;
  [[nodiscard]] unsigned most_threads() const noexcept { return most_threads_; }
  // The peak of the greatest process, as far as it was seen: what it took after the last look at it is missing.
  [[nodiscard]] std::uint64_t peak_rss_bytes() const noexcept { return peak_rss_bytes_; }
  // Files that were mapped as code.
  [[nodiscard]] const std::set<std::string>& files() const noexcept { return files_; }

 private:
  void add_files(pid_t pid);
  void add_times(int task, const std::string& folder);

  pid_t root_;
  unsigned looks_ = 0;
  unsigned looks_at_ready_ = 0;
  unsigned ready_threads_ = 0;                   // of all looks
  std::size_t cpus_apart_ = 0, most_apart_ = 0;  // beside the first, of all looks
  unsigned most_threads_ = 0;
  std::uint64_t peak_rss_bytes_ = 0;
  std::map<std::string, double> ready_s_by_cpus_;  // by the list of CPUs that the thread might use
  std::set<std::string> files_;
  Times times_;
  struct Thread {
    Times seen;          // last
    double ready_s = 0;  // that are not in ready_s_by_cpus_ yet
  };
  std::map<int, Thread> threads_;
};

}  // namespace freehold::doctor
