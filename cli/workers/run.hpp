// SPDX-License-Identifier: MIT
// Runs the tasks of a file through a ProcessPool: keeps its table full, writes the outputs in the order of the tasks, and
// reports the failed ones.
//
// Results that come before their turn are taken out of the table, so that one slow task does not keep the others from
// running; at most about 64 MiB of them are held.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/workers/task_reader.hpp"
#include "freehold/process.hpp"
#include "freehold/process/table/task_word.hpp"

namespace freehold::cli::workers {

struct Settings {
  ProcessPoolOptions pool;
  std::string tasks;  // a file, or "-"
  char end = '\n';    // of a task, and of an output
};

struct TaskFailure {
  std::uint64_t task = 0;  // the first is 1
  std::string why;
};

struct Results {
  std::uint64_t done = 0, failed = 0;
  std::uint64_t unanswered = 0;       // tasks that were read and have not ended
  std::vector<TaskFailure> failures;  // the first of them
  ProcessPoolStats pool;
  double seconds = 0;
  int signal = 0;           // that ended the run
  std::string broken;       // why no worker can be started
  std::string input_error;  // why no more tasks could be read

  [[nodiscard]] bool complete() const { return signal == 0 && broken.empty() && input_error.empty(); }
};

inline constexpr std::size_t kFailuresKept = 1000;

// Throws Failure if the tasks cannot be read at all, if there is no pool, or if the outputs cannot be written.
[[nodiscard]] Results run(const Settings& settings);

// Throws Failure(kExitRefused) unless a process can load `path` and finds the function in it. Pre: no other threads.
void check_component(const std::string& path);

// The results of a run of tasks: one line for people, and JSON.
[[nodiscard]] std::string summary_of(const Results& results);
[[nodiscard]] nlohmann::ordered_json results_json(const Settings& settings, const Results& results);

// freehold workers --serve NAME: runs a pool as a server, to which other processes attach by name.
struct ServeSettings {
  ProcessPoolOptions pool;
  std::string name;
  bool quiet = false;
};

// Returns the exit code, 128 and the signal that ended it. Throws Failure if the name is taken or the pool cannot be set up.
[[nodiscard]] int serve(ServeSettings settings);

}  // namespace freehold::cli::workers
