// SPDX-License-Identifier: MIT
// The job log of `freehold workers --exec`, in GNU parallel's format: one line for each job that has ended, so that a later
// run can skip it (--resume).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_set>

namespace freehold::cli::workers {

struct JobRecord {
  std::uint64_t number = 0;
  double begin = 0, runtime = 0;  // seconds, the first since 1970
  std::uint64_t sent = 0, received = 0;
  int exit_value = 0, signal = 0;
  std::string command;
};

class JobLog {
 public:
  // With `resume` the log is continued, else it is overwritten; an empty path: no log. Throws Failure if the file cannot be
  // written, or with `resume` is no job log.
  JobLog(const std::string& path, bool resume);
  ~JobLog();
  JobLog(const JobLog&) = delete;
  JobLog& operator=(const JobLog&) = delete;

  // Whether an earlier run has ended the job.
  [[nodiscard]] bool has(std::uint64_t number) const { return ended_.contains(number); }
  // Throws Failure.
  void add(const JobRecord& record);

 private:
  off_t read_former();

  const std::string path_;
  std::FILE* file_ = nullptr;
  std::unordered_set<std::uint64_t> ended_;
};

}  // namespace freehold::cli::workers
